"""The data sets that are known by name: their classes, and files, sizes and SHA-256 to download.

The hashes are those that TensorFlow Datasets publishes with its loaders
(https://github.com/tensorflow/datasets, url_checksums).
"""

from __future__ import annotations

from typing import NamedTuple

CIFAR10_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
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
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
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


_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist"
_CARS = "https://ai.stanford.edu/~jkrause"
_FLOWERS = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102"
_PETS = "https://www.robots.ox.ac.uk/~vgg/data/pets/data"

CATALOG = {
    "cifar10": Source(
        "CIFAR-10",
        "no license stated; cite Krizhevsky, 2009",
        (
            RemoteFile(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                unpack=True,
            ),
        ),
    ),
    "cifar100": Source(
        "CIFAR-100",
        "no license stated; cite Krizhevsky, 2009",
        (
            RemoteFile(
                "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                168_513_733,
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
                unpack=True,
            ),
        ),
    ),
    "cifar10-c": Source(
        "CIFAR-10-C",
        "CC BY 4.0; cite Hendrycks and Dietterich, 2019",
        (
            RemoteFile(
                "https://zenodo.org/records/2535967/files/CIFAR-10-C.tar",
                2_918_471_680,
                "c72763e101c723b7c507b96205f7e938912a5d587376173b825850cf3cb876a7",
                unpack=True,
            ),
        ),
    ),
    "fashion-mnist": Source(
        "Fashion-MNIST",
        "MIT; cite Xiao, Rasul and Vollgraf, 2017",
        (
            RemoteFile(
                f"{_FASHION}/train-images-idx3-ubyte.gz",
                26_421_880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            RemoteFile(
                f"{_FASHION}/train-labels-idx1-ubyte.gz",
                29_515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            RemoteFile(
                f"{_FASHION}/t10k-images-idx3-ubyte.gz",
                4_422_102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            RemoteFile(
                f"{_FASHION}/t10k-labels-idx1-ubyte.gz",
                5_148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ),
    ),
    "mnist": Source(
        "MNIST",
        "CC BY-SA 3.0; cite LeCun, Cortes and Burges, 1998",
        (
            RemoteFile(
                f"{_MNIST}/train-images-idx3-ubyte.gz",
                9_912_422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            RemoteFile(
                f"{_MNIST}/train-labels-idx1-ubyte.gz",
                28_881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            RemoteFile(
                f"{_MNIST}/t10k-images-idx3-ubyte.gz",
                1_648_877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            RemoteFile(
                f"{_MNIST}/t10k-labels-idx1-ubyte.gz",
                4_542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
    ),
    "cars": Source(
        "Stanford Cars",
        "research only, images belong to their owners; cite Krause et al., 2013",
        (
            RemoteFile(
                f"{_CARS}/car196/cars_train.tgz",
                979_269_282,
                "512b227b30e2f0a8aab9e09485786ab4479582073a144998da74d64b801fd288",
                unpack=True,
            ),
            RemoteFile(
                f"{_CARS}/car196/cars_test.tgz",
                977_350_468,
                "bffea656d6f425cba3c91c6d83336e4c5f86c6cffd8975b0f375d3a10da8e243",
                unpack=True,
            ),
            RemoteFile(
                f"{_CARS}/cars/car_devkit.tgz",
                330_960,
                "b97deb463af7d58b6bfaa18b2a4de9829f0f79e8ce663dfa9261bf7810e9accd",
                unpack=True,
            ),
            RemoteFile(
                f"{_CARS}/car196/cars_test_annos_withlabels.mat",
                185_758,
                "790f75be8ea34eeded134cc559332baf23e30e91367e9ddca97d26ed9b895f05",
                folder="devkit",
            ),
        ),
        "the authors' server is down since 2023; Kaggle has the images as "
        "jessicali9530/stanford-cars-dataset and the .mat files as "
        "abdelrahmant11/standford-cars-dataset-meta: put cars_train, cars_test and devkit into the "
        "same folder, unpacked",
    ),
    "cub200": Source(
        "CUB-200-2011",
        "research and education only, images belong to their owners; cite Wah et al., 2011",
        (
            RemoteFile(
                "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
                1_150_585_339,
                "0c685df5597a8b24909f6a7c9db6d11e008733779a671760afef78feb49bf081",
                unpack=True,
            ),
        ),
    ),
    "flowers102": Source(
        "Oxford Flowers-102",
        "no license stated; cite Nilsback and Zisserman, 2008",
        (
            RemoteFile(
                f"{_FLOWERS}/102flowers.tgz",
                344_862_509,
                "2d01ecc807db462958cfe3d92f57a8c252b4abd240eb955770201e45f783b246",
                unpack=True,
            ),
            RemoteFile(
                f"{_FLOWERS}/imagelabels.mat",
                502,
                "4903e94206bac23bf772aadf06451916df56b58fc483a62db32a97b82656651d",
            ),
            RemoteFile(
                f"{_FLOWERS}/setid.mat",
                14_989,
                "46b8678f91fd95d3c8f4feab80d271a6c834a1dd896fe29fd3e6ad9ce5c8dccd",
            ),
        ),
    ),
    "food101": Source(
        "Food-101",
        "images belong to Foodspotting, research only; cite Bossard, Guillaumin and Van Gool, 2014",
        (
            RemoteFile(
                "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz",
                4_996_278_331,
                "d97d15e438b7f4498f96086a4f7e2fa42a32f2712e87d3295441b2b6314053a4",
                unpack=True,
            ),
        ),
    ),
    "oxford-pets": Source(
        "Oxford-IIIT Pets",
        "CC BY-SA 4.0; cite Parkhi et al., 2012",
        (
            RemoteFile(
                f"{_PETS}/images.tar.gz",
                791_918_971,
                "67195c5e1c01f1ab5f9b6a5d22b8c27a580d896ece458917e61d459337fa318d",
                unpack=True,
            ),
            RemoteFile(
                f"{_PETS}/annotations.tar.gz",
                19_173_078,
                "52425fb6de5c424942b7626b428656fcbd798db970a937df61750c0f1d358e91",
                unpack=True,
            ),
        ),
    ),
}
