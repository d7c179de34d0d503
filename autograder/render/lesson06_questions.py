"""The ungraded questions at the end of lesson 06, in jupyterquiz's format."""

__all__ = ["QUESTIONS"]

QUESTIONS = (
    {
        "question": "T = 1024, not causal, blocks of 64 queries: how often is each key read?",
        "type": "numeric",
        "answers": [
            {
                "type": "value",
                "value": 16,
                "correct": True,
                "feedback": "Once for every block of queries.",
            },
            {"type": "default", "feedback": "How many programs does a head have?"},
        ],
    },
    {
        "question": "A block of keys brings no larger maximum. What does the rescaling do?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "Nothing: shrink is exp(0) = 1.",
                "correct": True,
                "feedback": "The multiplication happens all the same.",
            },
            {
                "answer": "It sets the sums to 0.",
                "correct": False,
                "feedback": "That is the first block, where m was −∞.",
            },
            {
                "answer": "It doubles them.",
                "correct": False,
                "feedback": "shrink is at most 1.",
            },
        ],
    },
    {
        "question": "A causal kernel passes all values and fails traffic. What is likely?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "Its loop runs over all keys and masks those to the right.",
                "correct": True,
                "feedback": "Masked scores cost as much as others.",
            },
            {
                "answer": "Its mask comes after the softmax.",
                "correct": False,
                "feedback": "That gives other values.",
            },
            {
                "answer": "It stores lse, which nobody needs.",
                "correct": False,
                "feedback": "One number a query hardly counts, and backward needs it.",
            },
        ],
    },
    {
        "question": "What makes it possible to compute P again in backward without a second "
        "running maximum?",
        "type": "multiple_choice",
        "answers": [
            {
                "answer": "lse, saved by forward.",
                "correct": True,
                "feedback": "P = exp(s − lse), block by block, in any order.",
            },
            {
                "answer": "δ, the sum of do · o.",
                "correct": False,
                "feedback": "δ enters dS, not P.",
            },
            {
                "answer": "P, saved by forward.",
                "correct": False,
                "feedback": "That would be the square again.",
            },
        ],
    },
)
