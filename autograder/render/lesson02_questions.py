"""The ungraded questions at the end of lesson 02, in jupyterquiz's format."""

__all__ = ["QUESTIONS"]

QUESTIONS = (
    {
        "question": "n = 5000 and BLOCK_SIZE = 1024: how many programs?",
        "type": "numeric",
        "answers": [
            {"type": "value", "value": 5, "correct": True, "feedback": "4.88, rounded up."},
            {"type": "default", "feedback": "Round 5000 / 1024 up."},
        ],
    },
    {
        "question": "A kernel loads without a mask and stores with one; n does not fill the last "
        "block. Which is true?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "It is right: what is not stored does no harm.",
                "correct": False,
                "feedback": "The load itself touches memory past the end.",
            },
            {
                "answer": "Its numbers are right, and it reads past the end.",
                "correct": True,
                "feedback": "So a test of values passes, and a card may fault.",
            },
            {
                "answer": "It stores garbage in the last block.",
                "correct": False,
                "feedback": "The mask on the store keeps the garbage out.",
            },
        ],
    },
    {
        "question": "A kernel that does c = a + b in bfloat16: one FLOP for how many bytes?",
        "type": "numeric",
        "answers": [
            {
                "type": "value",
                "value": 6,
                "correct": True,
                "feedback": "Three numbers of two bytes.",
            },
            {"type": "default", "feedback": "Count the numbers that move, then their size."},
        ],
    },
    {
        "question": "The first call takes 300 ms, the second 0.02 ms. What took the time?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "The kernel, because the cache was cold.",
                "correct": False,
                "feedback": "A cold cache costs microseconds.",
            },
            {
                "answer": "The compiler.",
                "correct": True,
                "feedback": "It runs once for each kind of call.",
            },
            {
                "answer": "Copying the tensors to the card.",
                "correct": False,
                "feedback": "A launch copies no tensor; it passes addresses.",
            },
        ],
    },
)
