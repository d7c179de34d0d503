"""The ungraded questions at the end of lesson 10, in jupyterquiz's format."""

__all__ = ["QUESTIONS"]

QUESTIONS = (
    {
        "question": "Linear attention with D = 64 in float32: how many KB has the state of a head "
        "after 100 000 tokens? (1 KB is 1024 bytes)",
        "type": "numeric",
        "answers": [
            {
                "type": "value",
                "value": 16,
                "correct": True,
                "feedback": "64 · 64 · 4 bytes, after one token as after all.",
            },
            {"type": "default", "feedback": "Does the state grow with the text?"},
        ],
    },
    {
        "question": "What does one decide in TileLang that Triton decides alone?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "Which tile lies in shared memory and which in registers.",
                "correct": True,
                "feedback": "alloc_shared and alloc_fragment say it.",
            },
            {
                "answer": "The size of a block.",
                "correct": False,
                "feedback": "One decides that in both.",
            },
            {
                "answer": "What each thread does.",
                "correct": False,
                "feedback": "That is CUDA C++.",
            },
        ],
    },
    {
        "question": "An unknown kernel in a large code base. What do you read first?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "The plain formula that its test compares it with.",
                "correct": True,
                "feedback": "Then you know what every block is for.",
            },
            {
                "answer": "Its autotune configurations.",
                "correct": False,
                "feedback": "They change the time, not the meaning.",
            },
            {
                "answer": "Its PTX.",
                "correct": False,
                "feedback": "That is the last thing, when the time is wrong.",
            },
        ],
    },
)
