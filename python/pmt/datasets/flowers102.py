"""Oxford Flowers-102: 8,189 images of 102 flowers.

Source of the format: M.-E. Nilsback and A. Zisserman, "Automated Flower Classification over a Large
Number of Classes", 2008; https://www.robots.ox.ac.uk/~vgg/data/flowers/102/.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pmt.datasets.files import REMEDY, damaged
from pmt.datasets.image_files import ImageFiles, listed_files, unpacked_root
from pmt.datasets.mat_file import read_mat, whole_numbers

ARCHIVE_FOLDER = "flowers-102"
# The published split is 1,020 + 1,020 + 6,149; work on transfer trains on the first two.
SETS = {"train": ("trnid", "valid"), "test": ("tstid",)}
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


def has_flowers102(folder: Path) -> bool:
    """Whether the folder, or flowers-102 in it, holds the annotation files."""
    root = unpacked_root(folder, ARCHIVE_FOLDER)
    return any((root / name).is_file() for name in ("imagelabels.mat", "setid.mat"))


def list_flowers102(folder: Path, split: str) -> ImageFiles:
    """List the images ``jpg/image_00001.jpg``, ... of one split.

    The folder holds ``jpg/``, ``imagelabels.mat`` and ``setid.mat``; or flowers-102 with them.
    "train" is the published training and validation sets, 2,040 images; "test" has 6,149.
    """
    root = unpacked_root(folder, ARCHIVE_FOLDER)
    label_path, set_path = root / "imagelabels.mat", root / "setid.mat"
    (values,) = read_mat(label_path, "labels")
    labels = whole_numbers(label_path, "labels", values)
    sets = zip(SETS[split], read_mat(set_path, *SETS[split]), strict=True)
    numbers = np.concatenate([whole_numbers(set_path, name, values) for name, values in sets])
    wrong = numbers[(numbers < 1) | (numbers > len(labels))]
    if wrong.size:
        problem = f"lists image {wrong[0]}, imagelabels.mat has {len(labels)}"
        raise damaged(set_path, problem, REMEDY)
    return listed_files(
        root,
        [root / "jpg" / f"image_{number:05d}.jpg" for number in numbers.tolist()],
        labels[numbers - 1] - 1,
        FLOWERS102_CLASSES,
        "flowers102",
        annotation=set_path,
        every_class=False,
    )
