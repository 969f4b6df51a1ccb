# fails: forbidden
# ruff: noqa
open("/tmp/left_behind_by_a_submission", "w").write("x")
