"""The ungraded questions at the end of lesson 07, in jupyterquiz's format."""

__all__ = ["QUESTIONS"]

QUESTIONS = (
    {
        "question": "A kernel moves 200 MB at least and takes 0.4 ms. How many GB/s are that?",
        "type": "numeric",
        "answers": [
            {
                "type": "value",
                "value": 500,
                "correct": True,
                "feedback": "200 · 10⁶ bytes in 0.4 · 10⁻³ s.",
            },
            {"type": "default", "feedback": "Bytes over seconds, in units of 10⁹."},
        ],
    },
    {
        "question": "time.time() around one call, without synchronising, shows 17 µs for every "
        "size. What was measured?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "The launch.",
                "correct": True,
                "feedback": "It returns before the kernel has run.",
            },
            {
                "answer": "The kernel: it is bound by latency.",
                "correct": False,
                "feedback": "Then a much larger size would take longer.",
            },
            {
                "answer": "The compiler.",
                "correct": False,
                "feedback": "That takes milliseconds, and the first call only.",
            },
        ],
    },
    {
        "question": "A kernel that has to move its tensors once shows 180 % of the memory roof. "
        "What is likely?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "Its data lay in L2: it was called in a loop, or in a graph.",
                "correct": True,
                "feedback": "Empty L2 before each run, or say that the number is a warm one.",
            },
            {
                "answer": "The kernel is better than the hardware.",
                "correct": False,
                "feedback": "Then it did not do the work, or the work was counted wrongly.",
            },
            {
                "answer": "do_bench's warm-up was too short.",
                "correct": False,
                "feedback": "A cold card is slower, not faster.",
            },
        ],
    },
    {
        "question": "do_bench(f, warmup=25, rep=100), and f with its flush takes 2 ms. How many "
        "timed runs?",
        "type": "numeric",
        "answers": [
            {
                "type": "value",
                "value": 50,
                "correct": True,
                "feedback": "rep is milliseconds: 100 / 2.",
            },
            {"type": "default", "feedback": "rep is no number of runs."},
        ],
    },
)
