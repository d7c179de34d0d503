"""The ungraded questions at the end of lesson 09, in jupyterquiz's format."""

__all__ = ["QUESTIONS"]

QUESTIONS = (
    {
        "question": "M = 16, N = 2048, tiles of 16 × 128, SPLIT_K = 4: how many programs?",
        "type": "numeric",
        "answers": [
            {"type": "value", "value": 64, "correct": True, "feedback": "1 · 16 tiles, 4 each."},
            {"type": "default", "feedback": "Tiles in both directions, times the splits."},
        ],
    },
    {
        "question": "A kernel must give the same bits in every run. How are partial sums added?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "By tl.atomic_add into a tensor of zeros.",
                "correct": False,
                "feedback": "Additions arrive in any order, and the last bits depend on it.",
            },
            {
                "answer": "In planes of their own, then by a second kernel in a fixed order.",
                "correct": True,
                "feedback": "The same order every time, for a little more traffic.",
            },
            {
                "answer": "By load, add, store.",
                "correct": False,
                "feedback": "That is a race: additions are lost.",
            },
        ],
    },
    {
        "question": "Tiles of 64 × 64, steps of 64, fp8, num_stages = 4 on an RTX 4080: how many "
        "bytes of shared memory?",
        "type": "numeric",
        "answers": [
            {
                "type": "value",
                "value": 24576,
                "correct": True,
                "feedback": "(64 + 64) · 64 numbers of one byte, three copies.",
            },
            {"type": "default", "feedback": "Bytes of one step, times the copies that are kept."},
        ],
    },
    {
        "question": "An autotuned kernel adds into its output with atomics. After the first call "
        "the output is far too large, after the second it is right. Why?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "The first call tuned: it ran the kernel many times on the same output.",
                "correct": True,
                "feedback": "reset_to_zero names the output, and it is zeroed before each trial.",
            },
            {
                "answer": "The first call compiled, and compiling is not exact.",
                "correct": False,
                "feedback": "Compiling runs nothing.",
            },
            {
                "answer": "Atomics need a warm cache.",
                "correct": False,
                "feedback": "They are right from the first one on.",
            },
        ],
    },
)
