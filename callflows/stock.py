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


def phrase(of: Phrase, language: str) -> str:
    """The phrase in a language's tongue; English where there is none."""
    return of.get(language.split("-")[0], of["en"])


def is_known(language: str) -> bool:
    """Whether we have words of our own in this language."""
    return language.split("-")[0] in NOT_REACHED
