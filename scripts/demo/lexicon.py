"""The words of the generated English: about 500 word types, with the features that the grammar needs.

The words were chosen by hand for this project. All forms (two numbers of a noun, five forms of a verb) are listed
instead of being derived by spelling rules, so irregular forms need no special treatment.
"""

from dataclasses import dataclass
from typing import Literal

Number = Literal["singular", "plural"]
Gender = Literal["masculine", "feminine", "neuter"]
NUMBERS: tuple[Number, Number] = ("singular", "plural")


@dataclass(frozen=True)
class Noun:
    """A countable noun. `category` decides which verbs accept the noun as object. `irregular` is True for plurals such
    as "men" and "knives".
    """

    singular: str
    plural: str
    category: str
    gender: Gender = "neuter"
    irregular: bool = False

    def form(self, number: Number) -> str:
        """Return the form of the noun in the given number."""
        return self.singular if number == "singular" else self.plural

    @property
    def hypernym(self) -> "Noun":
        """The noun that names the category of this noun, such as "tool" for "hammer"."""
        return HYPERNYMS[self.category]

    def __str__(self) -> str:
        return self.singular


@dataclass(frozen=True)
class Verb:
    """A verb with its forms. `objects` are the categories of nouns that can be its direct object; empty for an
    intransitive verb.
    """

    base: str
    third: str
    past: str
    participle: str
    progressive: str
    objects: tuple[str, ...] = ()

    @property
    def has_distinct_participle(self) -> bool:
        """True if past tense and participle differ (ate, eaten), so that their confusion is an error; False for found,
        found.
        """
        return self.past != self.participle

    def __str__(self) -> str:
        return self.past


@dataclass(frozen=True)
class Name:
    """A first name; `gender` is the gender of the pronouns that refer to the name."""

    word: str
    gender: Gender

    def __str__(self) -> str:
        return self.word


def _nouns(category: str, table: str, gender: Gender = "neuter", irregular: bool = False) -> tuple[Noun, ...]:
    pairs = (entry.split("/") for entry in table.split())
    return tuple(Noun(singular, plural, category, gender, irregular) for singular, plural in pairs)


PERSONS = (
    *_nouns("person", "boy/boys king/kings father/fathers brother/brothers uncle/uncles prince/princes", "masculine"),
    *_nouns("person", "man/men", "masculine", irregular=True),
    *_nouns("person", "girl/girls queen/queens mother/mothers sister/sisters aunt/aunts nun/nuns", "feminine"),
    *_nouns("person", "woman/women", "feminine", irregular=True),
    *_nouns("person", "teacher/teachers doctor/doctors farmer/farmers baker/bakers singer/singers student/students"),
    *_nouns("person", "painter/painters sailor/sailors guest/guests"),
    *_nouns("person", "child/children thief/thieves", irregular=True),
)
ANIMALS = (
    *_nouns("animal", "dog/dogs cat/cats horse/horses cow/cows rabbit/rabbits bear/bears frog/frogs duck/ducks"),
    *_nouns("animal", "mouse/mice goose/geese wolf/wolves", irregular=True),
)
OBJECTS = (
    *_nouns("fruit", "apple/apples pear/pears plum/plums orange/oranges lemon/lemons melon/melons"),
    *_nouns("tool", "hammer/hammers spade/spades axe/axes rake/rakes brush/brushes"),
    *_nouns("tool", "knife/knives", irregular=True),
    *_nouns("vehicle", "car/cars bus/buses boat/boats truck/trucks cart/carts bicycle/bicycles"),
    *_nouns("toy", "ball/balls doll/dolls kite/kites drum/drums puzzle/puzzles marble/marbles"),
    *_nouns("plant", "rose/roses tulip/tulips bush/bushes fern/ferns lily/lilies"),
    *_nouns("garment", "hat/hats coat/coats shirt/shirts glove/gloves boot/boots"),
    *_nouns("garment", "scarf/scarves", irregular=True),
    *_nouns("thing", "book/books letter/letters picture/pictures key/keys cup/cups box/boxes basket/baskets"),
    *_nouns("thing", "shelf/shelves", irregular=True),
)
PLACES = (
    *_nouns("building", "house/houses school/schools church/churches castle/castles shop/shops barn/barns mill/mills"),
    *_nouns("place", "garden/gardens river/rivers park/parks hill/hills bridge/bridges forest/forests lake/lakes"),
)
# Nouns that name the categories; the generated text states, for example, that a hammer is a tool.
_CATEGORIES = "animal/animals fruit/fruits tool/tools vehicle/vehicles toy/toys plant/plants garment/garments"
HYPERNYMS = {
    singular: Noun(singular, plural, category=singular)
    for singular, plural in (entry.split("/") for entry in [*_CATEGORIES.split(), "building/buildings"])
}
NOUNS = (*PERSONS, *ANIMALS, *OBJECTS, *PLACES)
_MEN = ("Adam", "Carl", "David", "George", "Henry", "Martin", "Peter", "Tom")
_WOMEN = ("Alice", "Clara", "Emma", "Helen", "Jane", "Lucy", "Mary", "Susan")
NAMES = (*(Name(word, "masculine") for word in _MEN), *(Name(word, "feminine") for word in _WOMEN))


def _verbs(table: str, objects: tuple[str, ...] = ()) -> tuple[Verb, ...]:
    entries = (entry.split("/") for entry in table.split())
    return tuple(Verb(base, third, past, participle, ing, objects) for base, third, past, participle, ing in entries)


INTRANSITIVE = _verbs(
    """sleep/sleeps/slept/slept/sleeping laugh/laughs/laughed/laughed/laughing run/runs/ran/run/running
    sing/sings/sang/sung/singing dance/dances/danced/danced/dancing cry/cries/cried/cried/crying
    smile/smiles/smiled/smiled/smiling swim/swims/swam/swum/swimming jump/jumps/jumped/jumped/jumping
    wait/waits/waited/waited/waiting fall/falls/fell/fallen/falling rest/rests/rested/rested/resting
    play/plays/played/played/playing"""
)
# Intransitive verbs that can have an animal as subject.
ANIMAL_VERBS = tuple(
    verb for verb in INTRANSITIVE if verb.base in {"sleep", "run", "swim", "jump", "wait", "fall", "rest"}
)
_ANYTHING = ("person", "animal", "fruit", "tool", "vehicle", "toy", "plant", "garment", "thing")
_MOVABLE = ("fruit", "tool", "toy", "garment", "thing")
TRANSITIVE = (
    *_verbs(
        """see/sees/saw/seen/seeing like/likes/liked/liked/liking find/finds/found/found/finding
        watch/watches/watched/watched/watching know/knows/knew/known/knowing
        forget/forgets/forgot/forgotten/forgetting draw/draws/drew/drawn/drawing""",
        _ANYTHING,
    ),
    *_verbs(
        """take/takes/took/taken/taking carry/carries/carried/carried/carrying
        choose/chooses/chose/chosen/choosing hide/hides/hid/hidden/hiding steal/steals/stole/stolen/stealing
        buy/buys/bought/bought/buying lose/loses/lost/lost/losing""",
        _MOVABLE,
    ),
    *_verbs("break/breaks/broke/broken/breaking clean/cleans/cleaned/cleaned/cleaning", ("tool", "toy", "thing")),
    *_verbs("eat/eats/ate/eaten/eating", ("fruit",)),
    *_verbs("drive/drives/drove/driven/driving", ("vehicle",)),
    *_verbs("throw/throws/threw/thrown/throwing", ("toy", "fruit")),
    *_verbs("grow/grows/grew/grown/growing", ("plant", "fruit")),
    *_verbs("wear/wears/wore/worn/wearing", ("garment",)),
    *_verbs(
        """help/helps/helped/helped/helping visit/visits/visited/visited/visiting
        follow/follows/followed/followed/following thank/thanks/thanked/thanked/thanking""",
        ("person",),
    ),
    *_verbs("feed/feeds/fed/fed/feeding", ("animal",)),
)
REFLEXIVE = _verbs(
    """admire/admires/admired/admired/admiring wash/washes/washed/washed/washing
    blame/blames/blamed/blamed/blaming praise/praises/praised/praised/praising
    protect/protects/protected/protected/protecting teach/teaches/taught/taught/teaching"""
)
CLAUSAL = _verbs("say/says/said/said/saying think/thinks/thought/thought/thinking hope/hopes/hoped/hoped/hoping")
# Verbs of state, which have no progressive form.
STATIVE = frozenset({"like", "know", "find", "forget", "lose", "see"})
VERBS = (*INTRANSITIVE, *TRANSITIVE, *REFLEXIVE, *CLAUSAL)

SIZES = ("big", "small", "old", "new", "young", "ugly")
QUALITIES = ("red", "green", "brown", "white", "yellow", "pretty", "strange", "heavy", "dark")
MOODS = ("happy", "sad", "tired", "hungry", "angry", "kind", "quiet", "clever", "busy", "ill")
PREPOSITIONS = ("near", "behind", "beside", "with")
PLACE_PREPOSITIONS = ("near", "behind", "in", "by")
TIME_ADVERBS = ("today", "again", "quickly", "slowly", "quietly")

REFLEXIVE_PRONOUNS = {"masculine": "himself", "feminine": "herself", "neuter": "itself", "plural": "themselves"}
SUBJECT_PRONOUNS = {"masculine": "he", "feminine": "she", "neuter": "it", "plural": "they"}
OBJECT_PRONOUNS = {"masculine": "him", "feminine": "her", "neuter": "it", "plural": "them"}
POSSESSIVES = {"masculine": "his", "feminine": "her", "neuter": "its", "plural": "their"}
