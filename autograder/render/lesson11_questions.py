"""The ungraded questions at the end of lesson 11, in jupyterquiz's format."""

__all__ = ["QUESTIONS"]

QUESTIONS = (
    {
        "question": "A step takes a fifth of a kernel's time away. How many times as fast is it?",
        "type": "numeric",
        "answers": [
            {
                "type": "value",
                "value": 1.25,
                "correct": True,
                "feedback": "1 / (1 − 0.2).",
            },
            {"type": "default", "feedback": "The old time over the new one."},
        ],
    },
    {
        "question": "A matmul keeps the tensor cores busy for 140 µs and memory for 40 µs. A "
        "change halves what it reads from memory. What do you predict?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "Next to nothing.",
                "correct": True,
                "feedback": "Memory was waiting for the tensor cores, and now it waits longer.",
            },
            {
                "answer": "1.17 times as fast: 20 of 180 µs go away.",
                "correct": False,
                "feedback": "The two work at the same time, so their times do not add up.",
            },
            {
                "answer": "Twice as fast.",
                "correct": False,
                "feedback": "That would be a kernel that memory decides.",
            },
        ],
    },
    {
        "question": "Your kernel took 0.200 ms this morning, a changed one takes 0.194 ms now. "
        "What do you know?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "Nothing yet: both have to take turns in one run.",
                "correct": True,
                "feedback": "A card's clock moves with heat and power by more than 3 %.",
            },
            {
                "answer": "The change is worth 3 %.",
                "correct": False,
                "feedback": "So might a cooler card be.",
            },
            {
                "answer": "Nothing: 3 % can never be measured.",
                "correct": False,
                "feedback": "Functions that take turns can be told apart to 1.5 %.",
            },
        ],
    },
    {
        "question": "Which step exists on compute capability 9.0 and not on 8.9?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "Tensor descriptors that a copy engine reads.",
                "correct": True,
                "feedback": "The engine (TMA) came with 9.0.",
            },
            {
                "answer": "A loop of its own for the blocks without a mask.",
                "correct": False,
                "feedback": "That is plain Triton.",
            },
            {
                "answer": "Powers of two in place of exp.",
                "correct": False,
                "feedback": "Every card computes those.",
            },
        ],
    },
)
