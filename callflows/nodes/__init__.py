"""The kinds of node a flow is made of, one module each; `registry` lists them once."""
