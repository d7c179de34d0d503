"""The course's fast kernels, one subject a module. They answer the exercises: no part of the
students' bundle."""
