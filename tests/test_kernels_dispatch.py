"""Which card kernels are chosen for: a named one, the machine's, or the table's default."""

import subprocess
import sys

import pytest
import triton

from autograder.ir.cards import card
from lab_setup.kernels import dispatch


def test_a_named_card_and_the_default():
    with dispatch.named("H200") as row:
        assert row.name == "H200 SXM"
        seen = dispatch.capability(), dispatch.sms(), dispatch.shared_per_block()
        assert seen == (90, 132, 232_448) and dispatch.hopper()
        with dispatch.named(card("RTX 4090")):
            assert not dispatch.hopper() and dispatch.sms() == 128
        assert dispatch.capability() == 90


def test_unknown_cards_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="H200"), dispatch.named("Voodoo 2"):
        pass
    assert dispatch.of_capability(89).shared_per_block == 101_376
    with pytest.raises(ValueError, match="80, 89, 90"):
        dispatch.of_capability(75)


def test_what_does_not_fit_is_dropped():
    configs = [triton.Config({"B": b}, num_stages=s) for b in (64, 256) for s in (2, 4)]
    prune = dispatch.fitting(lambda o: o["B"] * o["n"] * o["num_stages"])
    with dispatch.named("RTX 4080"):
        kept = prune(configs, {"n": 128})
        assert [(c.kwargs["B"], c.num_stages) for c in kept] == [(64, 2), (64, 4), (256, 2)]
        with pytest.raises(ValueError, match="smaller tiles"):
            prune(configs, {"n": 1024})
    with dispatch.named("H200"):
        assert len(prune(configs, {"n": 128})) == 4


def test_importing_touches_no_device():
    script = (
        "import torch; torch.cuda.is_available = torch.cuda._lazy_init = None\n"
        "import lab_setup.kernels.dispatch"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_card_in_the_machine_is_asked_by_what_torch_and_triton_say(monkeypatch):
    import torch
    from triton.runtime import driver

    class Properties:
        major, minor, multi_processor_count = 8, 6, 84

    class Driver:
        class utils:
            @staticmethod
            def get_device_properties(index):
                return {"max_shared_mem": 101_376 + index}

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Properties)
    monkeypatch.setattr(driver, "_active", Driver)
    dispatch._device.cache_clear()
    seen = dispatch.capability(), dispatch.sms(), dispatch.shared_per_block()
    dispatch._device.cache_clear()
    assert seen == (86, 84, 101_379)
