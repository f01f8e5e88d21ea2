from amaranth import Cat, Module, Signal
from amaranth.hdl import Assert, Fragment

from tests.hdl.processes import in_parts


def statements_of(fragment: Fragment) -> list[list[str]]:
    return [[repr(statement) for statement in part.statements["comb"]] for part, *_ in fragment.subfragments]


def test_statements_that_drive_the_same_stay_together_in_order():
    a, b, c, d, e = (Signal(4, name=name) for name in "abcde")
    m = Module()
    m.d.comb += [a.eq(1), b.eq(2), d.eq(e)]
    with m.If(e[0]):
        m.d.comb += c.eq(a)
    m.d.comb += Cat(b[0], c[3]).eq(e)
    m.d.comb += a.eq(3)
    whole = [repr(statement) for statement in Fragment.get(m, None).statements["comb"]]
    fragment = in_parts(Fragment.get(m, None))
    assert "comb" not in fragment.statements
    assert sorted(statements_of(fragment)) == sorted([[whole[0], whole[5]], [whole[1], *whole[3:5]], [whole[2]]])


def test_assertions_are_kept():
    a = Signal()
    m = Module()
    m.d.comb += [Assert(a), a.eq(1), Assert(a == 0)]
    whole = [repr(statement) for statement in Fragment.get(m, None).statements["comb"]]
    assert sorted(statements_of(in_parts(Fragment.get(m, None)))) == sorted([[whole[1]], [whole[0], whole[2]]])


def test_modules_below_are_in_parts_too():
    m, inner = Module(), Module()
    a, b = Signal(), Signal()
    inner.d.comb += [a.eq(1), b.eq(1)]
    m.submodules.inner = inner
    fragment = in_parts(Fragment.get(m, None))
    [(below, *_)] = fragment.subfragments
    assert len(statements_of(below)) == 2
