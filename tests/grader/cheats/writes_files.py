# fails: forbidden
open("/tmp/left_behind_by_a_submission", "w").write("x")
