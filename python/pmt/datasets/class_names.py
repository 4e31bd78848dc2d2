"""Class names of the well-known data sets, and the names that fit given labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.datasets.files import damaged

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


def names_for(
    path: Path | str,
    labels: npt.NDArray[np.integer],
    class_names: Sequence[str] | None,
    *,
    at_least: int = 1,
) -> tuple[str, ...]:
    """Return `class_names`, or the numbers "0", "1", ... as names; check that the labels fit.

    With numbers as names there are `at_least` so many classes; `path` names the labels' file in
    errors.
    """
    low, high = int(labels.min()), int(labels.max())
    if low < 0:
        raise damaged(path, f"label {low} is below 0", "number the classes from 0")
    if class_names is None:
        if high >= _core.MOST_CHANNELS:
            raise damaged(
                path,
                f"label {high} is above {_core.MOST_CHANNELS - 1}, the largest of any model",
                "number the classes from 0, without gaps",
            )
        return tuple(str(label) for label in range(max(at_least, high + 1)))
    if high >= len(class_names):
        raise damaged(
            path,
            f"label {high} is out of range 0 to {len(class_names) - 1} of the "
            f"{len(class_names)} class names",
            "correct the label or give a name for every class",
        )
    return tuple(class_names)
