import json


def test_doctor_says_what_is_here(cli):
    done = cli("doctor", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    facts = {f["name"]: f for f in report["facts"]}
    assert facts["TileLang"]["here"]
    assert facts["torch"]["here"]
    assert {"CUDA device", "nvcc", "cuobjdump", "nvdisasm", "node", "chromium", "jupyterlab"} <= set(facts)
    for fact in facts.values():
        assert fact["here"] or (fact["cost"] and fact["fix"]), fact


def test_doctor_in_words(cli):
    done = cli("doctor")
    assert "TileLang" in done.out
    assert "without it" in done.out or "--  " not in done.out
