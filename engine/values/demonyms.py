"""Nationalities and their countries, so that "French" is compared with "France"."""

from __future__ import annotations

_COUNTRIES = """
afghanistan: afghan afghans | albania: albanian | algeria: algerian | america: american americans usa u.s. us |
argentina: argentine argentinian | armenia: armenian | australia: australian australians aussie |
austria: austrian austrians | bangladesh: bangladeshi | belgium: belgian belgians | bolivia: bolivian |
brazil: brazilian brazilians | britain: british briton britons uk u.k. | bulgaria: bulgarian | cambodia: cambodian |
cameroon: cameroonian | canada: canadian canadians | chile: chilean | china: chinese | colombia: colombian |
croatia: croatian | cuba: cuban cubans | cyprus: cypriot | czechia: czech | denmark: danish dane danes |
ecuador: ecuadorian | egypt: egyptian egyptians | england: english | estonia: estonian | ethiopia: ethiopian |
europe: european europeans | finland: finnish | france: french frenchman frenchwoman | georgia: georgian |
germany: german germans | ghana: ghanaian | greece: greek greeks | haiti: haitian | hungary: hungarian |
iceland: icelandic | india: indian indians | indonesia: indonesian | iran: iranian iranians | iraq: iraqi iraqis |
ireland: irish | israel: israeli israelis | italy: italian italians | jamaica: jamaican | japan: japanese |
kenya: kenyan | korea: korean koreans | latvia: latvian | lebanon: lebanese | libya: libyan | lithuania: lithuanian |
malaysia: malaysian | malta: maltese | mexico: mexican mexicans | mongolia: mongolian | morocco: moroccan |
nepal: nepalese nepali | netherlands: dutch | nigeria: nigerian | norway: norwegian norwegians |
pakistan: pakistani | peru: peruvian | philippines: filipino philippine | poland: polish | portugal: portuguese |
rome: roman romans | romania: romanian | russia: russian russians | scotland: scottish scots | serbia: serbian |
singapore: singaporean | slovakia: slovak | slovenia: slovenian | somalia: somali | spain: spanish spaniard |
sweden: swedish swedes | switzerland: swiss | syria: syrian | taiwan: taiwanese | thailand: thai |
tibet: tibetan | tunisia: tunisian | turkey: turkish | ukraine: ukrainian | uruguay: uruguayan |
venezuela: venezuelan | vietnam: vietnamese | wales: welsh | africa: african africans | asia: asian asians
"""
COUNTRY_OF: dict[str, str] = {}
"""The country of a nationality, and of itself, in lower case."""
for _entry in _COUNTRIES.replace("\n", " ").split("|"):
    _country, _, _names = _entry.strip().partition(": ")
    COUNTRY_OF |= dict.fromkeys((_country, *_names.split()), _country)
SAFE_IN_LOWER_CASE = frozenset(
    name
    for name, country in COUNTRY_OF.items()
    if name != country and name not in ("us", "polish", "uk", "dane", "roman")
)
"""Nationalities that are not also another word, so that they count without a capital."""
REGIONS = frozenset({"africa", "asia", "europe", "britain", "england", "scotland", "wales", "rome"})
"""Those that another of them, or a country, may be a part of, so that two of them do not contradict each other."""
