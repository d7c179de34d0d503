"""The course's texts and what builds notebooks from them; ``docs/EDITING.md`` says how to edit."""
