"""The room's names: each gets an address of its own, and never a second-hand one."""

from stockade.gateway.names import NameTable
from stockade.net.host import Host


def host(name: str) -> Host:
    return Host(name=name)


def test_a_name_keeps_its_address_and_the_address_means_the_name() -> None:
    names = NameTable()
    address = names.address_for(host("app.test"))
    assert address == "198.18.0.2"  # the first of the pool: .0 is the network, .1 the gateway
    assert names.address_for(host("app.test")) == address
    assert names.host_at(address) == host("app.test")


def test_no_address_is_given_to_a_second_name() -> None:
    names = NameTable()
    addresses = [names.address_for(host(f"n{number}.test")) for number in range(1000)]
    assert len(set(addresses)) == 1000


def test_when_the_names_are_used_up_new_ones_get_none_and_old_ones_still_work() -> None:
    names = NameTable(limit=3)
    given = [names.address_for(host(f"n{number}.test")) for number in range(3)]
    assert names.address_for(host("one-more.test")) is None
    assert [names.address_for(host(f"n{number}.test")) for number in range(3)] == given


def test_the_pool_ends_inside_the_benchmarking_range() -> None:
    """RFC 2544: 198.18.0.0/15 ends with 198.19.255.255, which stays unused."""
    names = NameTable(limit=10**9)
    for number in range(131_069):
        last = names.address_for(host(f"n{number}.test"))
    assert last == "198.19.255.254"
    assert names.address_for(host("one-more.test")) is None


def test_an_address_that_was_never_given_out_means_nothing() -> None:
    assert NameTable().host_at("198.18.0.2") is None
