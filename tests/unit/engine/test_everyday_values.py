"""Values as a shop, a clinic, a timetable and a service's manual have them: what the knowledge says about each."""

from __future__ import annotations

import pytest

from groundwire.engine.values.support import check_values

SIGNS = {"supported": "+", "contradicted": "-", "derived": "=", "absent": "?"}


def list_outcomes(response: str, knowledge: str) -> list[str]:
    """Each value with the sign of its outcome before it; "~" for one of which the knowledge has another of its kind."""
    return [
        f"{'~' if check.outcome == 'absent' and check.evidence else SIGNS[check.outcome]}"
        f"{response[check.value.start : check.value.end]}"
        for check in check_values(response, [knowledge])
    ]


SHOP = "Delivery costs £4.95 and takes 3 to 5 working days. Orders above £40 ship free. Returns are free within 30 days."
HOURS = "We are open Mon-Fri 9-6, Sat 10-4. Closed on Sundays and public holidays."
PRICES = "A single ticket costs £4.50, a child's ticket £2.25. A day pass is £9."
CLINIC = "The clinic opens at 8 am and closes at 6 pm. Blood tests are taken in Room 12. Call 0124 556 7788 for results."
TIMETABLE = "The bus to Ely leaves at 9:15, 10:45 and 19:00 from stop B. The journey takes 35 minutes. Platform 3 is closed."
MANUAL = "The service needs Python 3.9 or later. Send requests to api.example.com/v2/orders. The limit is 100 requests per minute."
CONTACT = "Write to help@shop.example or call +44 20 7946 0958. Our address is 12 Mill Lane, Leeds LS1 4AP."

CODES = [
    # phone numbers
    ("Call 0124 556 7788.", CLINIC, ["+0124 556 7788"]),
    ("Call 01245567788.", CLINIC, ["+01245567788"]),
    ("Call 0124-556-7788.", CLINIC, ["+0124-556-7788"]),
    ("You can reach us on 0124 556 7789.", CLINIC, ["-0124 556 7789"]),
    ("Ring 020 7946 0958.", CONTACT, ["+020 7946 0958"]),
    ("Ring +44 (0)20 7946 0958.", CONTACT, ["++44 (0)20 7946 0958"]),
    ("Ring 0044 20 7946 0958.", CONTACT, ["+0044 20 7946 0958"]),
    ("Ring +44 20 7946 0985.", CONTACT, ["-+44 20 7946 0985"]),
    ("Our number is (555) 123-4567.", "Phone: 555-123-4567.", ["+(555) 123-4567"]),
    ("Our number is 1-800-555-0199.", "Phone: 1-800-555-0198.", ["-1-800-555-0199"]),
    ("In an emergency call 999.", "In an emergency call 112.", ["-999"]),
    ("In an emergency call 999.", CLINIC, ["?999"]),
    ("Call 300 people.", CLINIC, ["?300"]),
    ("Call us on 0124 556 7788.", "The shop sells tea.", ["?0124 556 7788"]),
    # e-mail and web addresses
    ("Mail help@shop.example.", CONTACT, ["+help@shop.example"]),
    ("Mail Help@Shop.example, please.", CONTACT, ["+Help@Shop.example"]),
    ("Mail info@shop.example.", CONTACT, ["-info@shop.example"]),
    ("See https://www.shop.example/returns.", "Returns: shop.example/returns", ["+https://www.shop.example/returns"]),
    ("See shop.example.", "Returns: https://shop.example/returns", ["+shop.example"]),
    ("See shop.example/faq.", "Returns: https://shop.example", ["?shop.example/faq"]),
    ("Returns are at shop-returns.com.", "Returns: shop.example/returns", ["-shop-returns.com"]),
    ("Send requests to api.example.com/v1/orders.", MANUAL, ["-api.example.com/v1/orders"]),
    ("POST to /v2/orders.", MANUAL, ["?/v2/orders"]),
    # versions
    ("It needs Python 3.11.", MANUAL, ["+Python", "?3.11"]),
    ("It needs Python 3.9 or later.", MANUAL, ["+Python", "+3.9"]),
    ("It needs Python 3.7.", MANUAL, ["+Python", "-3.7"]),
    ("It needs Python 3.", MANUAL, ["+Python", "?3"]),
    ("The newest release is v2.1.0.", "Version 2.1.0 is the newest release.", ["+v2.1.0"]),
    ("The newest release is version 2.1.", "Version 2.1.0 is the newest release.", ["+version 2.1"]),
    ("The newest release is v2.2.0.", "Version 2.1.0 is the newest release.", ["-v2.2.0"]),
    ("The newest release is 2.1.1.", "Version 2.1.0 is the newest release.", ["-2.1.1"]),
    ("The rating is 4.8 out of 5.", "The rating is 4.8 of 5.", ["+4.8", "+5"]),
    # identifiers, rooms, postcodes
    ("Order #4471 has shipped.", "Order 4471 has been shipped.", ["+Order #4471"]),
    ("Order no. 4472 has shipped.", "Order 4471 has been shipped.", ["-Order no. 4472"]),
    ("Use the code SAVE10.", "The voucher SAVE10 gives 10% off.", ["+code SAVE10"]),
    ("Use the voucher SAVE20.", "The voucher SAVE10 gives 10% off.", ["-voucher SAVE20"]),
    ("Blood tests are in Room 12.", CLINIC, ["+Room 12"]),
    ("Blood tests are in Room 14.", CLINIC, ["-Room 14"]),
    ("Go to room 14.", CLINIC, ["-room 14"]),
    ("It leaves from Gate B14.", "The flight leaves from gate B12.", ["-Gate B14"]),
    ("Flight BA117 leaves at noon.", "BA117 leaves at 12:00.", ["+Flight BA117", "+noon"]),
    ("Flight BA118 leaves at noon.", "Flight BA117 leaves at 12:00.", ["-Flight BA118", "+noon"]),
    ("A missing key returns status 404.", "A missing key returns status 401.", ["-status 404"]),
    ("The server listens on port 8080.", "The server listens on port 8080 by default.", ["+port 8080"]),
    ("The server listens on port 8000.", "The server listens on port 8080 by default.", ["-port 8000"]),
    ("The postcode is LS1 4AP.", CONTACT, ["+LS1 4AP"]),
    ("The postcode is LS1 4AB.", CONTACT, ["-LS1 4AB"]),
    ("It is in Springfield, IL 62704.", "Address: Springfield, IL 62704.", ["+Springfield", "+IL", "+62704"]),
    ("It is in Springfield, IL 62705.", "Address: Springfield, IL 62704.", ["+Springfield", "+IL", "-62705"]),
    ("In case 3 people come, call.", "The case is closed.", ["?3"]),
    ("It weighs 5kg.", "Item 5 is heavy.", ["?5kg"]),
]
TIMES = [
    ("It leaves at 7 pm.", TIMETABLE, ["+7 pm"]),
    ("It leaves at 7 p.m.", TIMETABLE, ["+7 p.m."]),
    ("It leaves at 7.00pm.", TIMETABLE, ["+7.00pm"]),
    ("It leaves at seven in the evening.", TIMETABLE, ["+seven in the evening"]),
    ("It leaves at quarter past nine.", TIMETABLE, ["+quarter past nine"]),
    ("It leaves at quarter to eleven.", TIMETABLE, ["+quarter to eleven"]),
    ("The bus leaves at 9:30.", TIMETABLE, ["-9:30"]),
    ("The bus leaves at half past nine.", TIMETABLE, ["-half past nine"]),
    ("The bus leaves at 7 am.", TIMETABLE, ["-7 am"]),
    ("It leaves at 12 noon.", "It leaves at midday.", ["+12 noon"]),
    ("Yes, until 6.", CLINIC, ["+6"]),
    ("We close at 5 pm.", CLINIC, ["-5 pm"]),
    ("The clinic closes at 8 am.", CLINIC, ["-8 am"]),
    ("You can come at 3 pm.", "The clinic is open from 8 am to 6 pm.", ["?3 pm"]),
    ("The clinic is open until 7 pm.", "The clinic is open from 8 am to 6 pm.", ["-7 pm"]),
    # opening hours
    ("On Saturday we are open until 6 pm.", HOURS, ["+Saturday", "-6 pm"]),
    ("On Saturday we are open until 4 pm.", HOURS, ["+Saturday", "+4 pm"]),
    ("Saturday 10-4.", HOURS, ["+Saturday", "+10", "+4"]),
    ("On Saturdays we're open from 10 am to 4 pm.", HOURS, ["+Saturdays", "+10 am", "+4 pm"]),
    ("We open at 9 on Saturday.", HOURS, ["-9", "+Saturday"]),
    ("We open at 9 on Tuesday.", HOURS, ["+9", "+Tuesday"]),
    ("On weekdays we close at 6 pm.", HOURS, ["+weekdays", "+6 pm"]),
    ("On weekdays we close at 5 pm.", HOURS, ["+weekdays", "-5 pm"]),
    ("On Friday at 3 pm we are open.", HOURS, ["+Friday", "?3 pm"]),
    ("Monday to Saturday we're open 9 to 6.", HOURS, ["?Monday to Saturday", "-9", "-6"]),
    ("We are closed on Sunday.", HOURS, ["+Sunday"]),
    ("We are closed at weekends.", "Open Monday to Friday.", ["~weekends"]),
    ("Deliveries come on Wednesdays.", "Deliveries come on Tuesdays.", ["-Wednesdays"]),
    ("Deliveries come on Tuesdays.", "Deliveries come on Tuesdays and Fridays.", ["+Tuesdays"]),
    ("The market is on Thursday.", "The market is held Monday to Friday.", ["+Thursday"]),
    ("The market is on Sunday.", "The market is held Monday to Friday.", ["-Sunday"]),
    ("The sun shines on the open sea.", HOURS, []),
    ("9 to 5 people came.", HOURS, ["?9", "?5"]),
]
DATES = [
    ("It is due on 5/11/2025.", "It is due on 5 November 2025.", ["+5/11/2025"]),
    ("It is due on 5/11/2025.", "It is due on May 11, 2025.", ["+5/11/2025"]),
    ("It is due on 5/11/2025.", "It is due on 2025-11-05.", ["+5/11/2025"]),
    ("It is due on 5/11/2025.", "It is due on 6 November 2025.", ["-5/11/2025"]),
    ("It is due on 5/11/25.", "It is due on 5 November 2025.", ["+5/11/25"]),
    ("It is due on 2025-11-05.", "It is due on 5 November 2025.", ["+2025-11-05"]),
    ("It is due on 5.11.2025.", "It is due on 5 November 2025.", ["+5.11.2025"]),
    ("It is due on 25/11/2025.", "It is due on 11/25/2025.", ["+25/11/2025"]),
    ("The sale is on 6 November.", "The sale runs from 5 to 8 November.", ["?6 November"]),
    ("The sale is on 9 November.", "The sale runs from 5 to 8 November.", ["-9 November"]),
    ("The sale ends on November 12.", "The sale ends on November 8.", ["-November 12"]),
    ("The sale is 5-8 November.", "The sale runs from November 5 to November 8.", ["+5", "+8 November"]),
    ("The sale starts on Nov 5.", "The sale is on Nov 5-8.", ["+Nov 5"]),
    ("It runs from 3 March to 7 April.", "It runs 3 March – 7 April.", ["+3 March", "+7 April"]),
    ("It is on in April.", "It runs 3 March – 7 April.", ["+April"]),
]
AMOUNTS = [
    ("Delivery costs £4.95.", SHOP, ["+£4.95"]),
    ("Delivery costs £5.95.", SHOP, ["-£5.95"]),
    ("Delivery costs 495 pence.", SHOP, ["+495 pence"]),
    ("It takes 3-5 working days.", SHOP, ["+3", "+5"]),
    ("You can return it within 14 days.", SHOP, ["-14 days"]),
    ("You can return it within a month.", SHOP, []),
    ("A litre costs €2.", "1000 ml costs €2.", ["+€2"]),
    ("It holds 33 cl.", "The can holds 330 ml.", ["+33 cl"]),
    ("The limit is 60 requests per minute.", MANUAL, ["-60"]),
    ("The limit is 100 requests per minute.", MANUAL, ["+100"]),
    ("You get 15% off.", "Members get 10% off.", ["-15%"]),
    ("You get ten per cent off.", "Members get 10% off.", ["+ten per cent"]),
    ("A visit is £20.", "Admission: £15.", ["~£20"]),
]
DERIVED = [
    ("Two packs give you 24 batteries.", "A pack has 12 batteries.", ["?Two", "=24"]),
    ("Three single tickets cost £13.50.", PRICES, ["?Three", "=£13.50"]),
    ("Two adults and one child pay £11.25 together.", PRICES, ["?Two", "=£11.25"]),
    ("Together they have 27 rooms.", "It has 15 double rooms and 12 single rooms.", ["=27"]),
    ("It has 27 rooms.", "It has 15 double rooms and 12 single rooms.", ["=27"]),
    ("It has 28 rooms.", "It has 15 double rooms and 12 single rooms.", ["-28"]),
    ("With delivery you pay £24.95.", "The kettle costs £20. Delivery costs £4.95.", ["=£24.95"]),
    ("You save £4.50 with a day pass after two singles.", PRICES, ["+£4.50", "?two"]),
    ("The day pass is £4.50 more than a single.", PRICES, ["+£4.50"]),
    ("The adult ticket is £2.25 more than the child's.", PRICES, ["+£2.25"]),
    ("The pass is £6.75 more than a child's ticket.", PRICES, ["=£6.75"]),
    ("That is £40 after the discount.", "The coat costs £50. Members get 20% off.", ["=£40"]),
    ("You save £10.", "The coat costs £50. Members get 20% off.", ["=£10"]),
    ("That is 25% of the seats.", "12 of the 48 seats are free.", ["=25%"]),
    ("36 seats are taken, the rest is free.", "12 of the 48 seats are free.", ["=36"]),
    ("Last orders are at 5:30 pm.", "We close at 6 pm. Last orders are 30 minutes before closing.", ["=5:30 pm"]),
    ("Last orders are at 5 pm.", "We close at 6 pm. Last orders are 30 minutes before closing.", ["~5 pm"]),
    ("The bus arrives at 9:50.", TIMETABLE, ["=9:50"]),
    ("It arrives at 7:35 pm.", TIMETABLE, ["=7:35 pm"]),
    ("The clinic is open for ten hours.", CLINIC, ["=ten hours"]),
    ("She was eight years old.", "She was born in 1756. Her first symphony is from 1764.", ["=eight years old"]),
    ("He finished it two years later.", "Work began in 1887. The tower was finished in 1889.", ["=two years"]),
    ("It is due on 19 November.", "Ordered on 5 November. Payment is due within 14 days.", ["=19 November"]),
    ("It is due on 20 November.", "Ordered on 5 November. Payment is due within 14 days.", ["~20 November"]),
    ("That is £5 each.", "Six mugs cost £30.", ["=£5"]),
    ("Each box has 4 layers, so 24 cakes.", "A layer has 6 cakes.", ["?4", "=24"]),
    ("It costs twice as much, £9.", "A ticket costs £4.50.", ["=£9"]),
    ("Half of it is £15.", "The fee is £30.", ["=Half", "=£15"]),
    ("On average 20 people come.", "On Monday 10 people came, on Tuesday 30 people.", ["=20"]),
    ("Three hours cost £45.", "Parking costs £15 per hour.", ["?Three hours", "=£45"]),
    ("The price rose by 10%.", "The price was £50 and is £55 now.", ["=10%"]),
    ("You get £5 change.", "The ticket is £15. She paid with £20.", ["=£5"]),
    ("You get £6 change.", "The ticket is £15. She paid with £20.", ["~£6"]),
]
TITLES = [
    ("Bob Ross hosted The Joy of Cooking.", "Bob Ross hosted The Joy of Painting.", ["+Bob Ross", "-Joy of Cooking"]),
    ("Bob Ross hosted The Joy of Painting.", "Bob Ross hosted The Joy of Painting.", ["+Bob Ross", "+Joy of Painting"]),
    ("She read The Joy of Cooking.", "Bob Ross hosted The Joy of Painting.", ["?Joy of Cooking"]),
    ("He wrote The Lord of the Flies.", "He wrote The Lord of the Rings.", ["?Lord of the Flies"]),
    ("She studied at the University of Oxford.", "She taught at the University of Leeds.", ["?University of Oxford"]),
]


@pytest.mark.parametrize(
    ("response", "knowledge", "expected"),
    [*CODES, *TIMES, *DATES, *AMOUNTS, *DERIVED, *TITLES],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_of_every_day_is_judged_by_its_kind(response: str, knowledge: str, expected: list[str]) -> None:
    assert list_outcomes(response, knowledge) == expected
