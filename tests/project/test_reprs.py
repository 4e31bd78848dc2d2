"""The text that objects show of themselves on a terminal and in a notebook: at most 12 lines."""

import pmt
from pmt._util.text import shortened
from pmt.profiling.profile import profile_method
from pmt.train.run.keep_best import note_without_choice
from pmt.train.training_data import warning_of_copies


def test_a_model_prints_its_blocks():
    model = pmt.load("cifar10_mcunet")
    line = (
        "pmt.Model cifar10_mcunet: 128x128x3 -> 10 classes, 43 layers, 464,816 weights, "
        "22,455,104 MACs"
    )
    assert repr(model) == f"<{line}>"
    assert str(model) == (
        f"{line}\n"
        "block    layers  weights        MACs\n"
        "B1            4    2,224   4,390,912\n"
        "B2            4   18,560   2,293,760\n"
        "B3            3   27,648   1,769,472\n"
        "B4            3  129,024   2,064,384\n"
        "paper14      14  177,456  10,518,528\n"
        "head          1    1,600       1,600\n"
        "all          43  464,816  22,455,104"
    )


def test_a_notebook_folds_many_layers_away():
    blocks, _, layers = pmt.load("cifar10_mcunet")._repr_html_().partition("<details>")
    assert blocks.endswith(
        "<tr><td>all</td><td>43</td><td>464,816</td><td>22,455,104</td></tr></tbody></table>"
    )
    assert layers.startswith("<summary>43 layers</summary><table><thead><tr><th>op</th>")
    assert layers.count("<tr>") == 44
    assert layers.endswith("</table></details>")


def result_of(epochs: int, kept: int) -> pmt.RunResult:
    records = [
        {"epoch": epoch, "train_loss": 1 / epoch, "held_out_loss": 2 / epoch, "forwards": epoch}
        for epoch in range(1, epochs + 1)
    ]
    start = {"phase": "start", "held_out_loss": 2.5}
    model = pmt.load("fashion_mnist_dscnn")
    return pmt.RunResult(model, records, [start], kept=records[kept - 1], held_out=1200)


def test_a_result_shows_the_first_the_last_and_the_kept_epoch():
    assert repr(result_of(30, 18)) == (
        "epoch  train loss  held-out  forwards\n"
        "start           -    2.5000         -\n"
        "    1      1.0000    2.0000         1\n"
        "    2      0.5000    1.0000         2\n"
        "  ...     15 more\n"
        "   18      0.0556    0.1111        18\n"
        "  ...      9 more\n"
        "   28      0.0357    0.0714        28\n"
        "   29      0.0345    0.0690        29\n"
        "   30      0.0333    0.0667        30\n"
        "kept epoch 18, the best on the 1,200 held-out images"
    )
    html = result_of(30, 18)._repr_html_()
    assert "<tr><td>...</td><td>15 more</td><td></td><td></td></tr>" in html
    assert html.endswith("<p>kept epoch 18, the best on the 1,200 held-out images</p>")


def test_a_short_result_is_whole():
    text = str(result_of(6, 6))
    assert len(text.splitlines()) == 9
    assert "more" not in text


def test_rows_that_are_left_out_are_counted():
    rows = [[str(i), "x", "y"] for i in range(10)]
    assert [row[0] for row in shortened(rows, 10)] == [str(i) for i in range(10)]
    assert shortened(rows, 4) == [
        *(["0", "x", "y"], ["1", "x", "y"], ["...", "6 more", ""]),
        *(["8", "x", "y"], ["9", "x", "y"]),
    ]
    assert [row[0] for row in shortened(rows, 4, keep=[9])] == ["0", "1", "...", "9"]
    assert [row[0] for row in shortened(rows, 4, keep=[5])] == ["0", "1", "...", "5", "...", "9"]


def test_a_cost_says_that_it_is_of_a_step():
    cost = pmt.Cost(forwards=800, macs=11_746_308_800)
    assert repr(cost) == "<pmt.Cost of a step: 800 perturbed forwards, 11,746,308,800 MACs>"
    assert cost._repr_html_() == (
        "<table><caption>cost of a step</caption><thead><tr><th>perturbed forwards</th>"
        "<th>MACs</th></tr></thead><tbody><tr><td>800</td><td>11,746,308,800</td></tr></tbody>"
        "</table>"
    )


def test_a_method_says_where_it_is_from_and_what_it_sets():
    method = pmt.methods.METHODS["bp_int8"]
    summary = "back-propagation: all layers in int8, with really rounded weights"
    source = (
        "Lin et al. 2022, On-device training under 256KB memory (arXiv:2206.15472), with the "
        "stored weights rounded"
    )
    assert repr(method) == f"<Method {summary}; trainer backprop; options learning_rate=0.0003>"
    assert str(method) == (
        f"{summary}\n"
        f"source   {source}\n"
        "trainer  backprop\n"
        "options  learning_rate=0.0003"
    )  # fmt: skip
    assert method._repr_html_() == (
        f"<table><caption>{summary}</caption><tbody><tr><td>source</td><td>{source}</td></tr>"
        "<tr><td>trainer</td><td>backprop</td></tr>"
        "<tr><td>options</td><td>learning_rate=0.0003</td></tr></tbody></table>"
    )
    paper = str(pmt.methods.METHODS["paper"]).splitlines()
    assert paper[-1] == "trainer  zeroth_order, preset paper"


def test_a_profile_says_what_a_step_takes():
    profile = profile_method(pmt.load("cifar10_mcunet"), "bp_int8", layers="B2", batch=1)
    assert str(profile) == (
        "method   bp_int8: batch 1\n"
        "trained  18,560 weights and 560 biases of 4 layers\n"
        f"a step   {profile.step_macs:,} MACs\n"
        "SRAM     280,384 bytes: 18,560 trainable weights, 2,240 trainable biases, "
        "6,144 saved activations, 7,680 clamp masks, 245,760 activation gradients\n"
        "flash    468,088 bytes of frozen weights and biases"
    )
    assert repr(profile) == (
        f"<Profile bp_int8: a step takes {profile.step_macs:,} MACs and 280,384 bytes of SRAM>"
    )
    assert profile._repr_html_().startswith("<table><caption>bp_int8: batch 1</caption><tbody>")


def test_what_a_choice_or_an_alignment_returns_prints_in_a_line():
    data, model = pmt.datasets.bundled("train"), pmt.load("fashion_mnist_dscnn")
    found = pmt.select(model, data[:100], data[100:200], candidates=["B1", "B2"], progress=False)
    assert repr(found) == "<Selection of 2 candidates by loss: B2 chosen, not significant>"
    model = pmt.statistics(model, data.images[:16])
    chosen = pmt.choose_input_stage(model, data.images[:2])
    assert repr(chosen) == (
        "<InputChoice: no filter is clearly better than what was there, of 1 candidate>"
    )
    assert repr(chosen.alignment) == (
        "<Alignment of 10 layers to 2 images: 2 forwards, 5,947,424 MACs>"
    )
    assert repr(pmt.align(model, data.images[:1])) == (
        "<Alignment: nothing aligned to 1 image; give 2 or more, all different>"
    )


def test_one_of_a_kind_is_in_the_singular():
    gray = pmt.datasets.bundled("train").images
    one = pmt.datasets.Dataset.from_arrays(gray[:1], [0], class_names=["a"], name="one")
    assert repr(one) == "Dataset('one', 1 image 28x28x1, 1 class)"
    assert note_without_choice(one, pmt.preset("default")) == [
        "no state is chosen: 1 training image is too few to hold some out"
    ]
    two = pmt.datasets.Dataset.from_arrays(gray[[0, 0]], [0, 0], name="two")
    assert str(warning_of_copies(two)).startswith(
        "1 training image of 2 in 'two' has the same pixels as others: copies stay on one side"
    )
    learner = pmt.Learner(pmt.load("fashion_mnist_dscnn"), samples=2)
    learner.observe(gray[:1])
    assert repr(learner) == "<Learner: 1 sample, original in force>"
