"""Users of a generated company. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from tenants.base.permissions import Role

TEAMS: Final = ("Platform", "Embedded", "Web", "Data", "Security")
MIN_PEOPLE: Final = 8
MAX_PEOPLE: Final = 200
_FIRST_ROLES: Final = (Role.OWNER, Role.ADMINISTRATOR, Role.BILLING, Role.AUDITOR)
# Added to _FIRST_ROLES in a company of at least _MIN_PEOPLE_FOR_MORE_ROLES users.
_MORE_ROLES: Final = (
    Role.OWNER,
    Role.ADMINISTRATOR,
    Role.ADMINISTRATOR,
    Role.BILLING,
    Role.AUDITOR,
)
_MIN_PEOPLE_FOR_MORE_ROLES: Final = 20
_FOUNDING_SHARE: Final = 0.7  # of the users: they arrive before the period
_LAST_ARRIVAL_SHARE: Final = 0.6  # of the period: no user arrives later

_FIRST_NAMES: Final = (
    *("Ada", "Amir", "Anouk", "Beatriz", "Bogdan", "Carla", "Chidi", "Dana", "Emre", "Esther"),
    *("Farah", "Felix", "Grace", "Hana", "Hugo", "Ines", "Ivo", "Jada", "Jonas", "Kaito"),
    *("Kirsten", "Lena", "Luca", "Mara", "Milan", "Nadia", "Noor", "Oskar", "Paula", "Priya"),
    *("Rafael", "Rosa", "Samir", "Selma", "Tariq", "Tessa", "Uma", "Viktor", "Wanda", "Yara"),
)
_LAST_NAMES: Final = (
    *("Abbott", "Almeida", "Berg", "Castillo", "Dvorak", "Eriksen", "Fischer", "Gupta"),
    *("Haddad", "Ivanova", "Jansen", "Kowalski", "Lindqvist", "Moreau", "Nakamura", "Okafor"),
    *("Petrov", "Quinn", "Rossi", "Schmidt", "Tanaka", "Usman", "Vargas", "Weber", "Yilmaz"),
)


@dataclass(frozen=True, slots=True)
class Persona:
    name: str
    email: str
    role: Role
    team: str  # one of TEAMS
    arrival_share: float  # the share of the period before the arrival; 0: arrives before the period


def make_personas(num: int, *, domain: str, random: Random) -> list[Persona]:
    """Return `num` users: an owner first, then some with other roles, then developers.

    `domain` is that of their e-mail addresses.
    """
    names = [f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES]
    roles = _assign_roles(num)
    return [
        Persona(
            name=name,
            email=f"{name.lower().replace(' ', '.')}@{domain}",
            role=next(roles),
            team=TEAMS[number % len(TEAMS)],
            arrival_share=_choose_arrival(number, num),
        )
        for number, name in enumerate(random.sample(names, num))
    ]


def _assign_roles(num: int) -> Iterator[Role]:
    yield from _FIRST_ROLES
    if num >= _MIN_PEOPLE_FOR_MORE_ROLES:
        yield from _MORE_ROLES
    while True:
        yield Role.DEVELOPER


def _choose_arrival(number: int, num: int) -> float:
    """Return the arrival share of the user at position `number` of `num` users."""
    # At least MIN_PEOPLE - 1 users arrive before the period. With the share alone, a small company
    # would begin with few developers, because the first users have other roles (_FIRST_ROLES). The
    # minimum is not MIN_PEOPLE, so that a user of the smallest company arrives during the period.
    num_founding = max(int(num * _FOUNDING_SHARE), MIN_PEOPLE - 1)
    if number < num_founding:
        return 0.0
    return _LAST_ARRIVAL_SHARE * (number - num_founding + 1) / (num - num_founding)
