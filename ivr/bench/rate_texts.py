"""What is spoken to measure a voice, and what is said in reply in `ivr bench rate`: no text is in both.

Written for it, as a business's line speaks; each 50 words or more, since a voice's rate over one sentence says little.
"""

PASSAGES = (
    "We are open from Monday to Friday between eight in the morning and six in the evening, and on Saturdays until "
    "noon. If you would like to be seen on the same day, please call before nine, because the first hour is kept "
    "for people in pain. You can also leave a message and we will call you back.",
    "Your parcel left our warehouse yesterday and should be with you by tomorrow afternoon. The driver will ring the "
    "bell twice and wait for a minute. If nobody answers, he leaves it with a neighbor or takes it to the nearest "
    "shop, where you can fetch it within seven days. You will need to show them some identification.",
    "The apartment has two bedrooms, a small kitchen with a window over the garden, and a place for one car. The rent "
    "is due on the first day of each month. Pets are welcome as long as they are quiet at night. You may paint the "
    "walls, but please ask us about the color before you begin.",
    "I have put you down for a table by the window at half past seven. There will be four of you, and one of the "
    "guests doesn't eat nuts, so I've told the kitchen about that. If your plans change, please let us know before "
    "noon on the day, so that somebody else can have the table.",
    "Before the technician arrives, please switch off the heating and let the water cool for about an hour. He will "
    "check the pressure first, then clean the filter and replace the valve if it is worn. Most visits take less than "
    "ninety minutes. Afterwards you will get a report and the invoice by email, normally on the following day.",
    "Thank you for waiting. I looked at your account, and the second payment was booked twice by mistake. I have sent "
    "it back, and you should see the money again in three to five working days. There is nothing more you need to do. "
    "If it hasn't arrived by the end of next week, please call us again.",
    "The course begins in the first week of March and runs for ten evenings. Each lesson lasts two hours with a short "
    "break for coffee. Beginners are very welcome, and all the materials are included in the price. If you miss an "
    "evening, you can make up for it in the parallel group, which meets on Thursdays at the same place.",
    "Our insurance department can answer that better than I can. They will want to know when the accident happened, "
    "whether anybody was injured, and if the other driver gave you a registration number. Photographs are helpful, "
    "especially of the damage and the surrounding traffic signs. Please don't authorize any repairs until the "
    "assessor has examined the vehicle.",
)
"""For the profile."""

REPLIES = (
    "Certainly, I can help you with that. The next free appointment is on Wednesday at a quarter past ten, and there "
    "is another one on Friday afternoon at three. Both are with Doctor Meyer, who has seen you before. Please come ten "
    "minutes early and bring your card. Which of the two would suit you better?",
    "Cleaning costs ninety dollars and takes about forty minutes. If we find anything that needs more work, we will "
    "always tell you the price first and never begin without asking. Most insurance plans pay for two cleanings in a "
    "year. If you are not sure about yours, just bring the papers and we will look at them together.",
    "I'm sorry to hear that the kitchen is under water. Please turn the main valve to the right until it stops; you "
    "will find it in the basement, near the meter. Then open the taps for a moment to let the pressure out. Someone "
    "from our team can be with you in about an hour. Is anybody else in the house?",
    "Last time we spoke about moving your booking to the week after Easter. I still have the two dates that you "
    "liked, the ninth and the eleventh, and the price would be the same as before. The room looks out on the lake "
    "and breakfast is included. Shall I go ahead and change it, or would you rather think about it?",
    "Parking is free for our customers. When you come from the highway, take the second exit, go past the library and "
    "turn left at the church. The entrance is behind the building, next to the bicycle stands. If the gate is closed, "
    "press the button and say your name, and somebody will open it for you right away.",
    "I understand. In that case I would suggest that we send you the documents by post, so that you can read them in "
    "peace. They usually arrive within two days. Sign the last page, keep the copy for yourself, and send the rest "
    "back in the envelope that comes with them. You don't need a stamp. Is your address still the same?",
    "We do have vegetarian dishes, and the chef is happy to leave things out if you tell us in time. On weekends it "
    "gets quite busy after seven, so an early table would be quieter for the children. There is a small garden where "
    "they can play. How many of you will there be, and do you need a high chair?",
    "Your prescription is ready and you can pick it up at any time before eight tonight. Take one tablet in the "
    "morning with a glass of water and don't drink coffee for half an hour afterwards. If you feel dizzy or have a "
    "headache that doesn't go away, stop taking them and give us a call. Do you have any other questions?",
)
"""What the service says to the bench's callers, in turn."""
