"""The curve of a training run's losses: it is reduced to fewer points and drawn as SVG."""

from xml.etree import ElementTree

from inference.demo_model.curve import MAX_POINTS, draw_curve, sample_log

TRAINING = [{"step": n, "tokens": 4096 * n, "loss": 8.0 - n / 400} for n in range(1, 2001)]
VALIDATION = [{"step": n, "tokens": 4096 * n, "validation_loss": 4.0} for n in (500, 2000)]


def test_sampling_keeps_few_training_losses_and_every_validation_loss() -> None:
    lines = sample_log(TRAINING + VALIDATION)

    assert sum("loss" in line for line in lines) <= MAX_POINTS
    assert [line for line in lines if "validation_loss" in line] == VALIDATION


def test_a_sampled_point_is_the_mean_of_its_losses() -> None:
    lines = sample_log(TRAINING)

    # 2,000 losses in groups of nine are 223 points; groups of eight would exceed MAX_POINTS.
    mean = sum(line["loss"] for line in TRAINING[:9]) / 9
    assert abs(lines[0]["loss"] - mean) < 1e-3


def test_the_drawing_is_well_formed_svg() -> None:
    root = ElementTree.fromstring(draw_curve(sample_log(TRAINING + VALIDATION)))  # noqa: S314  # our own text

    assert root.tag.endswith("svg")
