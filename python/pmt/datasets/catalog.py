"""The data sets that are known by name: their classes, terms, and the files to download."""

from importlib import resources
from typing import NamedTuple

CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
CIFAR100_SUPERCLASSES = {
    "aquatic_mammals": ("beaver", "dolphin", "otter", "seal", "whale"),
    "fish": ("aquarium_fish", "flatfish", "ray", "shark", "trout"),
    "flowers": ("orchid", "poppy", "rose", "sunflower", "tulip"),
    "food_containers": ("bottle", "bowl", "can", "cup", "plate"),
    "fruit_and_vegetables": ("apple", "mushroom", "orange", "pear", "sweet_pepper"),
    "household_electrical_devices": ("clock", "keyboard", "lamp", "telephone", "television"),
    "household_furniture": ("bed", "chair", "couch", "table", "wardrobe"),
    "insects": ("bee", "beetle", "butterfly", "caterpillar", "cockroach"),
    "large_carnivores": ("bear", "leopard", "lion", "tiger", "wolf"),
    "large_man-made_outdoor_things": ("bridge", "castle", "house", "road", "skyscraper"),
    "large_natural_outdoor_scenes": ("cloud", "forest", "mountain", "plain", "sea"),
    "large_omnivores_and_herbivores": ("camel", "cattle", "chimpanzee", "elephant", "kangaroo"),
    "medium_mammals": ("fox", "porcupine", "possum", "raccoon", "skunk"),
    "non-insect_invertebrates": ("crab", "lobster", "snail", "spider", "worm"),
    "people": ("baby", "boy", "girl", "man", "woman"),
    "reptiles": ("crocodile", "dinosaur", "lizard", "snake", "turtle"),
    "small_mammals": ("hamster", "mouse", "rabbit", "shrew", "squirrel"),
    "trees": ("maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"),
    "vehicles_1": ("bicycle", "bus", "motorcycle", "pickup_truck", "train"),
    "vehicles_2": ("lawn_mower", "rocket", "streetcar", "tank", "tractor"),
}
# Both official orders are alphabetical.
CIFAR100_CLASSES = tuple(sorted(name for part in CIFAR100_SUPERCLASSES.values() for name in part))
CIFAR100_COARSE_CLASSES = tuple(CIFAR100_SUPERCLASSES)
CIFAR100_COARSE_OF_FINE = tuple(
    label
    for name in CIFAR100_CLASSES
    for label, part in enumerate(CIFAR100_SUPERCLASSES.values())
    if name in part
)
FASHION_MNIST_CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
FLOWERS102_CLASSES = tuple(
    """\
pink primrose, hard-leaved pocket orchid, canterbury bells, sweet pea, english marigold, tiger lily,
moon orchid, bird of paradise, monkshood, globe thistle, snapdragon, colt's foot, king protea,
spear thistle, yellow iris, globe-flower, purple coneflower, peruvian lily, balloon flower,
giant white arum lily, fire lily, pincushion flower, fritillary, red ginger, grape hyacinth,
corn poppy, prince of wales feathers, stemless gentian, artichoke, sweet william, carnation,
garden phlox, love in the mist, mexican aster, alpine sea holly, ruby-lipped cattleya, cape flower,
great masterwort, siam tulip, lenten rose, barbeton daisy, daffodil, sword lily, poinsettia,
bolero deep blue, wallflower, marigold, buttercup, oxeye daisy, common dandelion, petunia,
wild pansy, primula, sunflower, pelargonium, bishop of llandaff, gaura, geranium, orange dahlia,
pink-yellow dahlia, cautleya spicata, japanese anemone, black-eyed susan, silverbush,
californian poppy, osteospermum, spring crocus, bearded iris, windflower, tree poppy, gazania,
azalea, water lily, rose, thorn apple, morning glory, passion flower, lotus, toad lily, anthurium,
frangipani, clematis, hibiscus, columbine, desert-rose, tree mallow, magnolia, cyclamen, watercress,
canna lily, hippeastrum, bee balm, ball moss, foxglove, bougainvillea, camellia, mallow,
mexican petunia, bromelia, blanket flower, trumpet creeper, blackberry lily""".replace(
        "\n", " "
    ).split(", ")
)


class RemoteFile(NamedTuple):
    """A file to fetch: its address, size in bytes and SHA-256."""

    url: str
    size: int
    sha256: str
    unpack: bool = False
    # The place in the data set's folder that it is put or unpacked into.
    folder: str = ""

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.url.rpartition("/")[2]


class Source(NamedTuple):
    """A data set: its description, its terms, and its files."""

    title: str
    terms: str
    files: tuple[RemoteFile, ...]
    note: str = ""


def _read_files() -> dict[str, tuple[RemoteFile, ...]]:
    """Return the files of each data set, by ``downloads.txt``."""
    text = resources.files("pmt.datasets").joinpath("downloads.txt").read_text(encoding="utf-8")
    files: dict[str, tuple[RemoteFile, ...]] = {}
    for row in text.splitlines():
        if not row.startswith("#"):
            name, place, size, sha256, url = row.split()
            folder = "" if place in ("*", ".") else place
            file = RemoteFile(url, int(size), sha256, unpack=place == "*", folder=folder)
            files[name] = (*files.get(name, ()), file)
    return files


_CARS_NOTE = (
    "the authors' server is down since 2023; Kaggle has the images as "
    "jessicali9530/stanford-cars-dataset and the .mat files as "
    "abdelrahmant11/standford-cars-dataset-meta: put cars_train, cars_test and devkit into the "
    "same folder, unpacked"
)
_OWNERS = "images belong to their owners"
_TERMS = {
    "cifar10": ("CIFAR-10", "no license stated; cite Krizhevsky, 2009"),
    "cifar100": ("CIFAR-100", "no license stated; cite Krizhevsky, 2009"),
    "cifar10-c": ("CIFAR-10-C", "CC BY 4.0; cite Hendrycks and Dietterich, 2019"),
    "fashion-mnist": ("Fashion-MNIST", "MIT; cite Xiao, Rasul and Vollgraf, 2017"),
    "mnist": ("MNIST", "CC BY-SA 3.0; cite LeCun, Cortes and Burges, 1998"),
    "cars": ("Stanford Cars", f"research only, {_OWNERS}; cite Krause et al., 2013"),
    "cub200": ("CUB-200-2011", f"research and education only, {_OWNERS}; cite Wah et al., 2011"),
    "flowers102": ("Oxford Flowers-102", "no license stated; cite Nilsback and Zisserman, 2008"),
    "food101": (
        "Food-101",
        "images belong to Foodspotting, research only; cite Bossard, Guillaumin and Van Gool, 2014",
    ),
    "oxford-pets": ("Oxford-IIIT Pets", "CC BY-SA 4.0; cite Parkhi et al., 2012"),
}
_FILES = _read_files()
CATALOG = {
    name: Source(title, terms, _FILES[name], _CARS_NOTE if name == "cars" else "")
    for name, (title, terms) in _TERMS.items()
}
