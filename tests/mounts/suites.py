"""Which tests of mounts go together, by what is mounted and by who has the time."""

import test_acl as acl
import test_adapter as adapter
import test_callback as callback
import test_keep_alive as keep_alive
import test_listener as listener
import test_loading as loading
import test_mount as mount
import test_pull as pull
import test_reports as reports
import test_versions as version
from plan import Case, Test, case

# Of the largest file, in MB, and how many read and write at the same time: for every check, and else.
QUICK_LARGEST, LARGEST = 8, 64
FEW, CROWD = 24, 100
FEW_MOUNTS = 15


def _payloads(largest: int, crowd: int) -> list[Test]:
    """Files of up to so many MB, through the page cache and past it, and of so many processes."""
    return [Case(mount.test_sizes, (largest, ""), f"buffered-{largest}"), Case(mount.test_sizes, (largest, "--direct"), f"direct-{largest}"),
            Case(mount.test_readers_and_writers, (crowd,)), mount.test_direct_unaligned]


PAYLOADS = _payloads(LARGEST, CROWD)
MOUNTED_OFTEN = Case(mount.test_mounted_again, (mount.MOUNTS,))
# What is hard on connections, memory and life times.
HARD = [*PAYLOADS, mount.test_killed, mount.test_connection_broken, mount.test_umount_lazy, mount.test_umount_forced,
        mount.test_server_silent, MOUNTED_OFTEN]
SMOKE: dict[str, list[Test]] = {
    "3": [mount.test_small_files],
    "4.0": [mount.test_small_files, acl.test_acl_longer_than_guessed],
    "4.1": [mount.test_small_files, mount.test_callback_channel, pull.test_agreement_on_pulls],
    "4.2": [mount.test_small_files, mount.test_callback_channel, version.test_versions_agreed_on]}
# There are READs side by side in these.
SIDE_BY_SIDE = [*HARD, keep_alive.test_silent_server_noticed, mount.test_written_by_the_server]
# Of all that the versions have in common.
COMMON = [mount.test_written_by_the_server, pull.test_replies_that_are_pulled, mount.test_large_directory, mount.test_over_ipv6,
          keep_alive.test_silent_server_noticed, mount.test_mountstats, mount.test_trace_events_of_the_server,
          mount.test_trace_events_of_the_client, mount.test_servers_tunables, mount.test_client_named_in_trace_events,
          mount.test_connections_told, loading.test_types_for_bpf, listener.test_listeners, *HARD, loading.test_module_removed,
          loading.test_loaded_by_mount, loading.test_no_leak]
# What the server's Calls are for: from 4.1 on they come over the mount's own connection.
CALLS: list[Test] = [callback.test_delegations_recalled, callback.test_locks_told_of]
CALLS_OF_SERVER = {"4.1": CALLS, "4.2": [*CALLS, callback.test_copies_of_the_servers]}
# nfsd cannot encode an ACL of more than a page for NFS 3, which would want rpcbind in a namespace, too.
OF_3: list[Test] = [pull.test_acl_that_nfs_has_no_room_for]
OF_4: list[Test] = [mount.test_every_form, mount.test_large_acls, acl.test_acl_longer_than_guessed,
                    listener.test_server_in_a_network_namespace]
# Each once.
FULL = {version: list(dict.fromkeys([*smoke, *CALLS_OF_SERVER.get(version, []), *(OF_3 if version == "3" else OF_4), *COMMON]))
        for version, smoke in SMOKE.items()}
# What version 2 of RPC-over-RDMA has otherwise, or has not.
OF_1 = [version.test_versions_agreed_on, mount.test_every_form, mount.test_trace_events_of_the_server,
        mount.test_trace_events_of_the_client, pull.test_replies_that_are_pulled, pull.test_agreement_on_pulls,
        pull.test_acl_that_nfs_has_no_room_for]


def second(tests: list[Test]) -> list[Test]:
    """What of tests is for version 2, too."""
    return [test for test in tests if test not in OF_1]


SECOND = {version: [*second(tests), *([mount.test_every_header_type] if version == "4.2" else [])] for version, tests in FULL.items()}
# What mostly waits, and for long: in guests of its own. The last wants a kernel with bonding at the server, the stock one.
WAITING: list[Test] = [mount.test_umount_forced, mount.test_server_silent, keep_alive.test_silent_server_noticed,
                       listener.test_servers_address_moves]
# With smaller files, and fewer mounts.
QUICKER = {**dict(zip(PAYLOADS, _payloads(QUICK_LARGEST, FEW))), MOUNTED_OFTEN: Case(mount.test_mounted_again, (FEW_MOUNTS,))}


def checked(tests: list[Test], *others: Test) -> list[Test]:
    """What of tests is for every check: what does not wait, nor is one of the others."""
    return [QUICKER.get(test, test) for test in tests if test not in (*WAITING, *others)]


# What is about the module more than about messages.
SHOWN: list[Test] = [mount.test_over_ipv6, mount.test_client_named_in_trace_events, mount.test_connections_told,
                     loading.test_types_for_bpf, mount.test_servers_tunables, listener.test_listeners,
                     mount.test_trace_events_of_the_server, mount.test_trace_events_of_the_client,
                     listener.test_server_in_a_network_namespace, loading.test_loaded_by_mount]
# In one cell of a check: that, and what takes long and is much the same anywhere.
ASIDE = [*SHOWN, MOUNTED_OFTEN, mount.test_umount_lazy, pull.test_replies_that_are_pulled, callback.test_copies_of_the_servers]
# In `make matrix` and `make soak` alone, or in a check elsewhere: a NFS 4.0 has the longer ACL, the client's life breaks connections.
ELSEWHERE = [mount.test_umount_lazy, acl.test_acl_longer_than_guessed, mount.test_connection_broken,
             callback.test_copies_of_the_servers]
# What leaks of version 2 are looked for behind; behind the rest `make matrix` and `make soak` look.
SECOND_LEAKS = [mount.test_every_header_type, mount.test_killed, loading.test_module_removed]
SECOND_CHECK = {"4.2": [*checked(SECOND["4.2"], *ASIDE, *SECOND_LEAKS, mount.test_connection_broken, loading.test_no_leak),
                        loading.test_module_removed],
                "3": [mount.test_small_files, QUICKER[PAYLOADS[1]], mount.test_direct_unaligned, loading.test_module_removed]}
SECOND_SHORT: list[Test] = [mount.test_small_files, mount.test_callback_channel, mount.test_direct_unaligned,
                            mount.test_every_header_type]
# Where the counts of messages begin near their end.
WRAPPED: list[Test] = [version.test_counts_wrap, mount.test_small_files, mount.test_callback_channel]
# What touches memory that a device maps.
MAPPING = [mount.test_small_files, mount.test_callback_channel, mount.test_every_form, mount.test_large_acls,
           mount.test_written_by_the_server, mount.test_large_directory, mount.test_trace_events_of_the_client,
           *(test for test in PAYLOADS if case(test).function != mount.test_readers_and_writers), loading.test_module_removed]


def played(faults: tuple[tuple[str, str, int], ...]) -> list[Test]:
    """What a device that plays an adapter has happen to it."""
    return [adapter.test_events_of_the_adapter, *(Case(adapter.test_faults_of_the_adapter, fault) for fault in faults)]


SOAK = [*HARD, callback.test_delegations_recalled_under_load, loading.test_module_removed, loading.test_no_leak]
# By the version that is mounted; of a server with a disk.
WITH_DISK: dict[str, list[Test]] = {
    "3": [reports.test_past_the_servers_cache, reports.test_locks_of_both_ends],
    "4.2": [reports.test_past_the_servers_cache, reports.test_size_of_what_is_not_written_yet]}


def secured(tests: list[Test], version: str) -> list[Test]:
    """The tests that make sense with Kerberos, and what proves that it is used.

    Its messages have other forms, since chunks carry no part of what is protected, and other chunks count. An ACL names
    users by name, and the guests have none. The realm knows the server by one address, and the server's daemon one network
    namespace. A client of NFS 4 closes files with the machine's credential (SP4_MACH_CRED), by a way of its own, on which
    `umount -f` ends nothing. The last put of an open file lets go of its mount before its credential, which then uses the mount's RPC
    client (__put_nfs_open_context() of Linux 7.3): many mounts in a row end in memory that was freed.
    """
    without = [mount.test_every_form, mount.test_every_header_type, mount.test_trace_events_of_the_server,
               mount.test_trace_events_of_the_client, mount.test_servers_tunables, mount.test_large_acls,
               acl.test_acl_longer_than_guessed, mount.test_over_ipv6, listener.test_server_in_a_network_namespace, MOUNTED_OFTEN,
               *([] if version == "3" else [mount.test_umount_forced])]
    return [mount.test_protected, *(test for test in tests if test not in without)]
