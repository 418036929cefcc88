"""The compiled form of the verifier: `python -m cake_verify.native` makes it out of these packages' own files.

`expand` rewrites a module into the Python that the compiler does well with, `build` compiles what it can of both packages into one extension
module, and `same` holds the result to the verdicts of the Python it came from: where one word of one answer differs, nothing is installed.
"""
