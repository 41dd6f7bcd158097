"""What we say ourselves where the file has no text of its own, in the languages that we know."""

from collections.abc import Mapping

Phrase = Mapping[str, str]

NOT_REACHED: Phrase = {
    "en": "I am sorry, nobody could take the call.",
    "de": "Es tut mir leid, es konnte niemand den Anruf annehmen.",
    "fr": "Je suis désolé, personne n'a pu prendre l'appel.",
    "es": "Lo siento, nadie ha podido atender la llamada.",
}
TRYING_NEXT: Phrase = {
    "en": "Nobody has answered there. I am trying somebody else.",
    "de": "Dort hat sich niemand gemeldet. Ich versuche es bei jemand anderem.",
    "fr": "Personne n'a répondu. J'essaie quelqu'un d'autre.",
    "es": "Allí no ha contestado nadie. Lo intento con otra persona.",
}
ONE_MOMENT: Phrase = {
    "en": "One moment, please.",
    "de": "Einen Moment bitte.",
    "fr": "Un instant, s'il vous plaît.",
    "es": "Un momento, por favor.",
}
YOUR_PLACE: Phrase = {
    "en": "You are number {} in the line.",
    "de": "Sie sind Nummer {} in der Warteschlange.",
    "fr": "Vous êtes numéro {} dans la file d'attente.",
    "es": "Usted es el número {} en la cola.",
}
NOBODY_WAITS: Phrase = {
    "en": "Nobody is waiting.",
    "de": "Es wartet niemand.",
    "fr": "Personne n'attend.",
    "es": "No hay nadie esperando.",
}
NOTED_ALREADY: Phrase = {
    "en": "It is noted already that we call you back.",
    "de": "Ihr Rückruf ist schon vorgemerkt.",
    "fr": "Votre rappel est déjà noté.",
    "es": "Ya está anotado que le devolvemos la llamada.",
}
CALLED_BACK_ALREADY: Phrase = {
    "en": "We have called you back once already; we can do that once a day only.",
    "de": "Wir haben Sie schon zurückgerufen; das geht nur einmal am Tag.",
    "fr": "Nous vous avons déjà rappelé ; cela n'est possible qu'une fois par jour.",
    "es": "Ya le hemos devuelto la llamada; solo podemos hacerlo una vez al día.",
}
WHAT_ELSE: Phrase = {
    "en": "What else can I do for you?",
    "de": "Was kann ich sonst für Sie tun?",
    "fr": "Que puis-je faire d'autre pour vous ?",
    "es": "¿En qué más puedo ayudarle?",
}

SAY_AGAIN: Phrase = {
    "en": "Sorry, I missed that. Could you say it again?",
    "de": "Entschuldigung, das habe ich nicht verstanden. Können Sie es noch einmal sagen?",
    "fr": "Pardon, je n'ai pas compris. Pouvez-vous répéter ?",
    "es": "Perdone, no le he entendido. ¿Puede repetirlo?",
}
STILL_THERE: Phrase = {
    "en": "Are you still there?",
    "de": "Sind Sie noch da?",
    "fr": "Êtes-vous toujours là ?",
    "es": "¿Sigue ahí?",
}
NOBODY_THERE: Phrase = {
    "en": "I can't hear you, so I'll hang up now. Please call again any time.",
    "de": "Ich höre Sie nicht und lege jetzt auf. Rufen Sie gern wieder an.",
    "fr": "Je ne vous entends pas, je vais donc raccrocher. N'hésitez pas à rappeler.",
    "es": "No le oigo, así que voy a colgar. Vuelva a llamar cuando quiera.",
}
TIME_IS_UP: Phrase = {
    "en": "I'm sorry, this is the longest a call can take. Please call again. Goodbye.",
    "de": "Es tut mir leid, länger kann ein Anruf nicht dauern. Bitte rufen Sie wieder an. Auf Wiederhören.",
    "fr": "Je suis désolé, un appel ne peut pas durer plus longtemps. Merci de rappeler. Au revoir.",
    "es": "Lo siento, una llamada no puede durar más. Vuelva a llamar, por favor. Adiós.",
}
MODEL_IS_DOWN: Phrase = {
    "en": "We are sorry, our assistant cannot take your call right now. Please call again in a few minutes.",
    "de": "Es tut uns leid, unser Assistent ist gerade nicht erreichbar. Bitte rufen Sie in einigen Minuten wieder an.",
    "fr": "Nous sommes désolés, notre assistant est indisponible. Merci de rappeler dans quelques minutes.",
    "es": "Lo sentimos, nuestro asistente no está disponible ahora. Vuelva a llamar en unos minutos.",
}
MONEY_IS_SPENT: Phrase = {
    "en": "I'm sorry, I have to end our call here. Please call again. Goodbye.",
    "de": "Es tut mir leid, ich muss unser Gespräch hier beenden. Bitte rufen Sie wieder an. Auf Wiederhören.",
    "fr": "Je suis désolé, je dois mettre fin à notre appel. Merci de rappeler. Au revoir.",
    "es": "Lo siento, tengo que terminar aquí la llamada. Vuelva a llamar, por favor. Adiós.",
}
GOODBYE: Phrase = {"en": "Goodbye.", "de": "Auf Wiederhören.", "fr": "Au revoir.", "es": "Adiós."}
CONNECTING: Phrase = {
    "en": "One moment, please. I'm connecting you.",
    "de": "Einen Moment bitte, ich verbinde Sie.",
    "fr": "Un instant, s'il vous plaît. Je vous mets en relation.",
    "es": "Un momento, por favor. Le paso la llamada.",
}
LINE_BROKE: Phrase = {
    "en": "Sorry, the line broke for a moment. Please go on.",
    "de": "Entschuldigung, die Leitung war kurz unterbrochen. Bitte fahren Sie fort.",
    "fr": "Pardon, la ligne a été coupée un instant. Continuez, je vous prie.",
    "es": "Perdone, la línea se ha cortado un momento. Continúe, por favor.",
}
LINES_BUSY: Phrase = {
    "en": "All our lines are busy at the moment. Please call again in a few minutes.",
    "de": "Zurzeit sind alle Leitungen belegt. Bitte rufen Sie in einigen Minuten wieder an.",
    "fr": "Toutes nos lignes sont occupées. Merci de rappeler dans quelques minutes.",
    "es": "En este momento todas las líneas están ocupadas. Vuelva a llamar en unos minutos.",
}
WELCOME_BACK: Phrase = {
    "en": "Welcome back to {}.",
    "de": "Willkommen zurück bei {}.",
    "fr": "Bienvenue à nouveau chez {}.",
    "es": "Bienvenido de nuevo a {}.",
}
CUT_OFF: Phrase = {
    "en": "We were cut off.",
    "de": "Wir wurden unterbrochen.",
    "fr": "Nous avons été coupés.",
    "es": "Se ha cortado la llamada.",
}
CUT_OFF_TALKING: Phrase = {
    "en": "We were cut off while talking about {}.",
    "de": "Wir wurden unterbrochen. Es ging um: {}.",
    "fr": "Nous avons été coupés. Nous parlions de : {}.",
    "es": "Se ha cortado la llamada. Hablábamos de: {}.",
}
SHALL_WE: Phrase = {
    "en": "Shall we go on, or start afresh?",
    "de": "Wollen wir weitermachen oder von vorne anfangen?",
    "fr": "Voulez-vous continuer ou recommencer ?",
    "es": "¿Quiere seguir o empezar de nuevo?",
}
LET_US: Phrase = {
    "en": "Let us go on from there.",
    "de": "Machen wir dort weiter.",
    "fr": "Reprenons à cet endroit.",
    "es": "Sigamos desde ahí.",
}
WERE_WE_CUT_OFF: Phrase = {
    "en": "If we were cut off before, please tell me what it was about.",
    "de": "Falls wir vorhin unterbrochen wurden, sagen Sie mir bitte, worum es ging.",
    "fr": "Si nous avons été coupés tout à l'heure, dites-moi de quoi il s'agissait.",
    "es": "Si antes se cortó la llamada, dígame de qué se trataba.",
}
OURS = (GOODBYE, CONNECTING, SAY_AGAIN, STILL_THERE, NOBODY_THERE, TIME_IS_UP, MONEY_IS_SPENT, LINE_BROKE)
"""What any call may hear at any time."""


def phrase(of: Phrase, language: str) -> str:
    """The phrase in a language's tongue; English where there is none."""
    return of.get(language.split("-")[0], of["en"])


def is_known(language: str) -> bool:
    """Whether we have words of our own in this language."""
    return language.split("-")[0] in NOT_REACHED
