"""Import hook that registers VIEval when VLMEvalKit starts a run; `vieval vlmevalkit --install-hook`
copies this file into site-packages, with a .pth file that imports it.

Every interpreter of the environment reads it, so it needs the standard library only, and little of
that.
"""

import sys


class Finder:
    """Wraps the loading of a module that only a run of the host imports, to register VIEval after
    it.
    """

    name = "vlmeval.inference"

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):  # type: ignore[no-untyped-def]
                execute(module)
                try:
                    from vieval_plugin.hosts.shutdown import one_line
                    from vieval_plugin.hosts.vlmevalkit import register
                except ModuleNotFoundError as error:
                    print(
                        (
                            f"vieval: VIEval is not installed, but its hook is ({error}); delete "
                            f"{__file__}"
                        ),
                        file=sys.stderr,
                    )
                else:
                    one_line(register)()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install():  # type: ignore[no-untyped-def]
    """Put the finder on `sys.meta_path`."""
    sys.meta_path.insert(0, Finder())
