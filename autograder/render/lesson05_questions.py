"""The ungraded questions at the end of lesson 05, in jupyterquiz's format."""

__all__ = ["QUESTIONS"]

QUESTIONS = (
    {
        "question": "A result of 1000 × 1500 in tiles of 128 × 128: how many programs?",
        "type": "numeric",
        "answers": [
            {"type": "value", "value": 96, "correct": True, "feedback": "8 times 12."},
            {"type": "default", "feedback": "Round up in each direction, then multiply."},
        ],
    },
    {
        "question": "Why do lanes of a and b beyond K read 0?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "Because tl.dot needs sides that are powers of two.",
                "correct": False,
                "feedback": "That is why there are such lanes, not what they must hold.",
            },
            {
                "answer": "Because they enter every sum of their row or column.",
                "correct": True,
                "feedback": "And 0 is what changes no sum.",
            },
            {
                "answer": "Because they would be stored otherwise.",
                "correct": False,
                "feedback": "The result has no K: lanes beyond K are never stored.",
            },
        ],
    },
    {
        "question": "Tiles of 64 × 128 in bfloat16: how many FLOP for a byte that a program loads?",
        "type": "numeric",
        "answers": [
            {
                "type": "value",
                "value": 42.67,
                "correct": True,
                "feedback": "2 · 64 · 128 operations for (64 + 128) numbers of 2 bytes.",
            },
            {
                "type": "range",
                "range": [42.5, 43],
                "correct": True,
                "feedback": "2 · 64 · 128 operations for (64 + 128) numbers of 2 bytes.",
            },
            {
                "type": "default",
                "feedback": "Operations and bytes for a step of depth 1.",
            },
        ],
    },
    {
        "question": "A float32 matmul agrees with torch on the CPU to six digits, and on a card to "
        "three. What is the likely reason?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "A mask is missing.",
                "correct": False,
                "feedback": "That gives wrong numbers at an edge, not three right digits.",
            },
            {
                "answer": "tl.dot rounds float32 operands to TF32 on the card.",
                "correct": True,
                "feedback": 'Ten bits are three digits; input_precision="ieee" keeps all.',
            },
            {
                "answer": "Programs run in another order on the card.",
                "correct": False,
                "feedback": "Each program computes its own tile, in the same order of sums.",
            },
        ],
    },
)
