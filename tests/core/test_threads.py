"""Threads are taken where they are free: not by every worker of a process pool."""

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor

import pytest

import pmt
from pmt import _core
from pmt._util import processes
from pmt._util.processes import thread_count


def _in_a_worker(start: int) -> tuple[int, int, float]:
    model = pmt.load("fashion_mnist_dscnn")
    logits = model.logits(pmt.datasets.bundled("test").take(4).images)
    trainer = pmt.ZOTrainer(layers="head", epochs=1, queries=2)
    return thread_count(0), trainer.threads + start, float(logits.sum())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_of_a_process_pool_uses_one_thread(method, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    model = pmt.load("fashion_mnist_dscnn")
    here = model.logits(pmt.datasets.bundled("test").take(4).images, threads=2)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        results = list(pool.map(_in_a_worker, [0, 0], timeout=120))
    assert results == [(1, 1, float(here.sum()))] * 2


def test_omp_num_threads_decides_in_a_worker(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(thread_count, 0).result(timeout=120) == 0


def test_as_asked_elsewhere():
    assert thread_count(0) == 0
    assert thread_count(3) == 3
    with pytest.raises(ValueError, match=r"^threads must be 0 \(all\) or more; got -1$"):
        thread_count(-1)


@pytest.mark.parametrize("allowed", [0, 1, 2])
@pytest.mark.parametrize("asked", [0, 3])
def test_one_works_where_the_system_starts_no_more(allowed, asked, monkeypatch):
    """OpenMP would end the process; a container that limits processes refuses Python too."""
    left = allowed

    def start(thread: threading.Thread) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise RuntimeError("can't start new thread")
        real(thread)

    real = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(_core, "threads", lambda requested: requested or 3)
    processes._can_start.cache_clear()
    if allowed == 2:
        assert thread_count(asked) == asked
    else:
        message = (
            f"only {allowed} of 2 further threads start: pmt works on one; allow the process more, "
            "or ask for fewer with threads=N or OMP_NUM_THREADS=N"
        )
        with pytest.warns(UserWarning, match=f"^{message}$"):
            assert thread_count(asked) == 1
        assert thread_count(asked) == 1  # warns once
    processes._can_start.cache_clear()
