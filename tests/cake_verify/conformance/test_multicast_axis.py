"""A multicast along an axis that the cluster does not span is told with the one that it does."""

import pytest

from cake_verify import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.examples import MULTICAST


@pytest.mark.parametrize("axis", ["k", "n"])
def test_the_first_edit_names_the_axis_of_the_cluster(axis: str) -> None:
    assert MULTICAST.count('multicast="m"') == 1
    text = MULTICAST.replace('multicast="m"', f'multicast="{axis}"')
    (error,) = verify_text(text).errors
    assert error.code == "H005" and error.fixes[0].edits[0].text == '"m"'
    assert not verify_text(applied(text, error.fixes[0].edits)).errors
