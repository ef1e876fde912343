"""A folder with few of the published logs, from which leaderboards are made in seconds."""

IMAGENHUB = "viescore_logs/results_{}/ImagenHub_Control-Guided_IG"
VIDEOS = "genai_bench_tiger/video_generation/{}"
FEW = (
    *map(
        IMAGENHUB.format, ("gpt4o_0shot", "gpt4v_0shot", "gpt4v_1shot", "autometrics")
    ),
    *map(VIDEOS.format, ("gpt4o", "llava", "random")),
    "genai_bench_tiger/image_generation/llava",
)


def few_logs(shared_data, folder):
    """Links to the logs of few judges on one part of each benchmark, and to what people said."""
    for name in (*FEW, "imagenhub/human_ratings"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(shared_data / name)
    # contests are read from a log of each part
    for part in ("image_edition", "image_generation"):
        (folder / "genai_bench_tiger" / part).mkdir(exist_ok=True)
        path = shared_data / "genai_bench_tiger" / part / "gpt4o"
        (folder / "genai_bench_tiger" / part / "votes").symlink_to(path)
    return folder
