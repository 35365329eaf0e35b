"""What was worked out last is kept, as far as there is room."""

from gsid_service.recent import Recent


def test_the_one_that_was_not_asked_for_the_longest_goes_first() -> None:
    recent = Recent[str](10)
    for name, size in (("a", 4), ("b", 4)):
        recent.put(name, name.upper(), size)
    assert recent.get("a") == "A"
    recent.put("c", "C", 4)
    assert [recent.get(name) for name in "abc"] == ["A", None, "C"]
    assert recent.taken == 8


def test_another_of_the_same_name_takes_its_place() -> None:
    recent = Recent[str](10)
    recent.put("a", "old", 9)
    recent.put("a", "new", 2)
    assert (recent.get("a"), recent.taken) == ("new", 2)
    recent.drop("a")
    assert (recent.get("a"), recent.taken) == (None, 0)


def test_what_is_larger_than_all_the_room_is_not_kept() -> None:
    recent = Recent[str](10)
    recent.put("a", "small", 1)
    recent.put("a", "large", 11)
    assert (recent.get("a"), recent.taken) == (None, 0)


def test_what_is_taken_is_not_kept() -> None:
    recent = Recent[str](10)
    recent.put("a", "A", 4)
    assert (recent.take("a"), recent.take("a"), recent.taken) == ("A", None, 0)
