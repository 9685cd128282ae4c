"""A coding agent's ordinary work under `exec/coding`: nothing of it is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from presets import work_is_done

pytestmark = [pytest.mark.kernel, pytest.mark.clients, pytest.mark.needs("userns", "bwrap", "room", "git")]

SHELL = r"""
set -e
command -v ls
cat <<END
here $((6 * 7))
END
diff <(echo a) <(echo a) && echo same
echo one two | tr ' ' '\n' | sort -r | head -n 1
x=$(echo q | tr q r); echo "$x ${x^^}"
(sleep 0.1; echo behind) & wait $!
trap 'echo trapped' USR1; kill -USR1 $$
coproc cat; echo through >&"${COPROC[1]}"; read -r -u "${COPROC[0]}" line; echo "$line"; kill $COPROC_PID
ulimit -c
"""
FILES = r"""
set -e
seq 1 100 > n
for way in z J j; do tar c${way}f n.tar n; tar tf n.tar; done
gzip -k n; xz -k n; zcat n.gz | tail -n 1; xzcat n.xz | tail -n 1
find . -name n -exec wc -l {} +
seq 1 8 | xargs -P 4 -n 1 sh -c 'echo $0' | sort | tr '\n' ' '; echo
sed -n '2s/2/two/p' n; awk 'NR == 3 {print $1 * 2}' n; awk 'BEGIN {system("echo by-awk")}'
perl -MPOSIX -e 'print join(",", map {$_ * 2} 1..3), " ", `echo by-perl`'
mkfifo /tmp/p; (echo fifo > /tmp/p) & cat /tmp/p
timeout 5 nice nohup setsid env A=b sh -c 'echo wrapped $A'
sqlite3 base.db 'create table t(a); insert into t values (7); select a from t'
"""
GIT = r"""
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q repo; cd repo
for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm "change $i"; done
echo x >> f1; git stash -q; git stash pop -q; git diff --stat | tail -n 1; git checkout -q f1
git gc -q; git fsck --no-dangling
GIT_SEQUENCE_EDITOR="sed -i 2s/pick/fixup/" git rebase -q -i --root; git log --format=%s
git log -P --grep='change (?=3)' --format='pcre %s'
cd ..; git init -q part; cd part; echo p > p; git add .; git commit -qm part; cd ../repo
git -c protocol.file.allow=always submodule --quiet add ../part part; git commit -qm 'with part'
git submodule foreach -q 'echo in $name'
git worktree add -q ../tree; cat ../tree/f2
cd ..; git clone -q "file://$PWD/repo" copy; git -C copy log --format=%s -n 1
git -C copy format-patch -q -1 --stdout | grep -c ^Subject
GIT_EDITOR='sed -i 1s/.*/edited/' git -C copy commit -q --amend; git -C copy log --format=%s -n 1
"""
COMPILERS = r"""
set -e
cat > a.c <<END
#include <stdio.h>
int twice(int); int main(void) { printf("%d\n", twice(21)); return 0; }
END
echo 'int twice(int x) { return 2 * x; }' > b.c
printf '#include <vector>\nint main() { std::vector<int> v{1}; return v[0] - 1; }\n' > c.cc
gcc -E a.c | grep -c twice
gcc -S -O2 b.c; as b.s -o b.o; gcc -pipe -O2 -flto a.c b.c -o a
g++ -O1 -flto=2 c.cc -o c; gcc -shared -fPIC b.c -o b.so
gcc -g -fprofile-arcs -ftest-coverage -c a.c; ar rc b.a b.o; nm b.a | grep -c twice; strip c
objdump -d b.o | grep -c '<twice>:'; readelf -h a | grep -c ELF64
for i in 1 2 3 4; do echo "int u$i(void) { return $i; }" > u$i.c; done
printf 'all: u1.o u2.o u3.o u4.o\n\t@echo linked\n%%.o: %%.c\n\t@$(CC) -c $<\n' > Makefile
make -j 4
./a 2>/dev/null || echo "code $?"
"""
PYTHON = r"""
set -e
python3 -m venv --without-pip made; made/bin/python -c 'import sys; print(sys.prefix == sys.base_prefix)'
python3 -c 'import subprocess; subprocess.run(["echo", "by-python"])'
python3 -m pip --version | cut -d ' ' -f 1
"""
NODE = r"""
set -e
node -e 'console.log(require("child_process").execFileSync("echo", ["by-node"]).toString().trim())'
echo '{"scripts": {"say": "node -p 6*7"}}' > package.json
npm run --silent --offline say
"""


def test_the_shell_and_what_it_starts(under: Any) -> None:
    run = under("exec/coding", ["bash", "-c", SHELL])
    work_is_done(run, "/usr/bin/ls", "here 42", "same", "two", "r R", "behind", "trapped", "through", "0")


def test_files_archives_and_the_programs_that_start_others(under: Any) -> None:
    run = under("exec/coding", ["bash", "-c", FILES])
    work_is_done(
        run, "n", "n", "n", "100", "100", "100 ./n", "1 2 3 4 5 6 7 8 ", "two", "6", "by-awk",
        "2,4,6 by-perl", "fifo", "wrapped b", "7",
    )  # fmt: skip


def test_git_with_its_own_programs_scripts_and_editors(under: Any) -> None:
    run = under("exec/coding", ["bash", "-c", GIT])
    work_is_done(
        run, " 1 file changed, 1 insertion(+)", "change 3", "change 1", "pcre change 3", "in part", "2",
        "with part", "1", "edited",
    )  # fmt: skip


@pytest.mark.needs("gcc")
def test_compilers_with_all_their_passes_and_what_they_make_does_not_run(under: Any, workspace: Path) -> None:
    run = under("exec/coding", ["bash", "-c", COMPILERS])
    assert run.out.splitlines() == ["1", "1", "1", "1", "linked", "code 126"], run.err
    assert run.code == 0
    assert [record["file"] for record in run.denials(entry="exec")] == [str(workspace / "a")]
    assert "`exec: {mode: any}` permits to make programs and run them" in run.err
    control = under("exec/coding", ["./a"])  # listed by being launched, it runs: it was built right
    assert (control.code, control.out) == (0, "42\n")


def test_python_with_an_environment_of_its_own(under: Any) -> None:
    run = under("exec/coding", ["bash", "-c", PYTHON])
    work_is_done(run, "False", "by-python", "pip")


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake here")
@pytest.mark.needs("gcc")
def test_cmake_finds_the_compiler_and_builds(under: Any, workspace: Path) -> None:
    (workspace / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.5)\nproject(x C)\nadd_executable(x x.c)\n"
    )
    (workspace / "x.c").write_text("int main(void) { return 0; }\n")
    run = under(
        "exec/coding", ["sh", "-c", "cmake -S . -B made >/dev/null && cmake --build made | tail -n 1"]
    )
    work_is_done(run, "[100%] Built target x")


@pytest.mark.needs("node")
def test_node_and_npm_scripts(under: Any) -> None:
    work_is_done(under("exec/coding", ["bash", "-c", NODE]), "by-node", "42")


def test_what_coding_does_not_list_is_refused_and_the_rest_goes_on(under: Any) -> None:
    run = under("exec/coding", ["bash", "-c", "unshare true; echo $?; ls /usr/bin/env"])
    assert run.out.splitlines() == ["126", "/usr/bin/env"]
    assert [record["program"] for record in run.denials(entry="exec")] == ["/usr/bin/unshare"]
