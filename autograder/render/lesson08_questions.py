"""The ungraded questions at the end of lesson 08, in jupyterquiz's format."""

__all__ = ["QUESTIONS"]

QUESTIONS = (
    {
        "question": "A vector of 1000 in blocks of 256, the load without a mask: how many lanes "
        "read past the end?",
        "type": "numeric",
        "answers": [
            {
                "type": "value",
                "value": 24,
                "correct": True,
                "feedback": "4 · 256 lanes, 1000 numbers.",
            },
            {"type": "default", "feedback": "How many blocks, how many lanes in all?"},
        ],
    },
    {
        "question": "A kernel prints the right values in Triton's interpreter. What do you know?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "That its values are right when programs run one after the other.",
                "correct": True,
                "feedback": "Nothing about bounds, races and traffic.",
            },
            {
                "answer": "That it is right on a card.",
                "correct": False,
                "feedback": "There programs run at the same time, and memory ends somewhere.",
            },
            {
                "answer": "That all its lanes stay in bounds.",
                "correct": False,
                "feedback": "A load past the end goes through there.",
            },
        ],
    },
    {
        "question": "All rows but row 0 are wrong. What do you look at first?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "The number that the row is multiplied by: the stride.",
                "correct": True,
                "feedback": "For row 0 any stride is right.",
            },
            {
                "answer": "The type of the accumulator.",
                "correct": False,
                "feedback": "That would touch row 0 as well.",
            },
            {
                "answer": "The grid.",
                "correct": False,
                "feedback": "Too small a grid leaves the last rows unwritten.",
            },
        ],
    },
    {
        "question": "cuda reports an illegal memory access in the line torch.cuda.synchronize(). "
        "Where is the fault?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "In a kernel launched before; the line only waited for it.",
                "correct": True,
                "feedback": "CUDA_LAUNCH_BLOCKING=1 moves the report to the launch.",
            },
            {
                "answer": "In synchronize: leave it out.",
                "correct": False,
                "feedback": "Then the next line that waits reports it.",
            },
            {
                "answer": "In the driver.",
                "correct": False,
                "feedback": "It almost always is a forgotten mask.",
            },
        ],
    },
)
