"""Threads that take work for as long as the interpreter runs."""

import gc
import threading
import weakref

import pytest

from vieval_plugin.backends.concurrency import DaemonPool


def threads(name):
    alive = threading.enumerate()
    return [thread for thread in alive if thread.name.startswith(f"{name}_")]


def test_results_come_in_order_from_no_more_threads_than_asked_for():
    with DaemonPool(3, "counted") as pool:
        assert list(pool.map(lambda n: n * n, range(50))) == [n * n for n in range(50)]
        assert 0 < len(threads("counted")) <= 3
        assert all(thread.daemon for thread in threads("counted"))
    assert threads("counted") == []


def test_an_idle_thread_is_used_again_and_lets_go_of_what_it_worked_on():
    with DaemonPool(8, "idle") as pool:
        for _ in range(20):
            pool.submit(int).result()
        # a thread counts as idle a moment after its result is there
        assert len(threads("idle")) < 8
    with DaemonPool(1) as pool:
        large = threading.Event()
        gone = weakref.ref(large)
        pool.submit(id, large).result()
        del large
        pool.submit(int).result()  # by now the thread has come back from the first
        gc.collect()
        assert gone() is None


def test_an_error_is_the_futures_and_the_thread_goes_on():
    with DaemonPool(1) as pool:
        failed = pool.submit(int, "x")
        assert pool.submit(int, "3").result() == 3
        with pytest.raises(ValueError, match="invalid literal"):
            failed.result()


def test_a_closed_pool_takes_nothing_and_drops_what_waits_where_it_is_to():
    pool, begun, go = DaemonPool(1), threading.Event(), threading.Event()
    running = pool.submit(lambda: (begun.set(), go.wait(10)))
    waiting = pool.submit(int)
    begun.wait(10)
    pool.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(int)
    assert waiting.cancelled()
    go.set()
    assert running.result(10) == (None, True)


def test_threads_end_where_nobody_holds_the_pool():
    pool = DaemonPool(2, "dropped")
    list(pool.map(int, range(2)))
    ending = threads("dropped")
    assert ending
    del pool
    gc.collect()
    for thread in ending:
        thread.join(10)
    assert not any(thread.is_alive() for thread in ending)
