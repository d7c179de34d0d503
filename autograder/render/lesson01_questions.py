"""The ungraded questions at the end of lesson 01, in jupyterquiz's format."""

QUESTIONS = (
    {
        "question": "n = 1000 and BLOCK = 256: how many lanes of the last program have no number?",
        "type": "numeric",
        "answers": [
            {"type": "value", "value": 24, "correct": True, "feedback": "4 · 256 = 1024 lanes."},
            {
                "type": "default",
                "feedback": "How many programs are there, and how many lanes in all?",
            },
        ],
    },
    {
        "question": "A kernel multiplies all numbers of a row. What should masked lanes hold?",
        "type": "multiple_choice",
        "answers": [
            {"answer": "0", "correct": False, "feedback": "Then the product is 0."},
            {"answer": "1", "correct": True, "feedback": "The one number that changes no product."},
            {"answer": "−∞", "correct": False, "feedback": "That is for a maximum."},
        ],
    },
    {
        "question": "Program 5 stores a number that program 6 loads, in one launch. Tests pass.",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "It is right: 5 comes before 6.",
                "correct": False,
                "feedback": "A card may run 6 first, or both at once.",
            },
            {
                "answer": "It is a race; two launches would be right.",
                "correct": True,
                "feedback": "The second launch begins when the first has finished.",
            },
            {
                "answer": "It is right if the store has a mask.",
                "correct": False,
                "feedback": "A mask says which lanes work, not when.",
            },
        ],
    },
    {
        "question": "M = N = K = 64 with tiles of 8 × 32: how many numbers do the loads request?",
        "type": "numeric",
        "answers": [
            {
                "type": "value",
                "value": 40960,
                "correct": True,
                "feedback": "64³ · (1/8 + 1/32) = 32 768 + 8192.",
            },
            {"type": "default", "feedback": "M·N·K·(1/BM + 1/BN)"},
        ],
    },
)
