# Two commands matter: `make demo` and `make test`. Each sets up what is missing first.
.DEFAULT_GOAL := help
BIN := .venv/bin
.PHONY: help setup demo lab test check fix prove-tests bench docs doctor lock

help:           ## print this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' Makefile | expand -t 20

setup:          ## install what is missing: Debian packages (with sudo if need be) and .venv
	@tools/setup

demo: setup     ## the main job on real input: a contained curl, pip and Chromium, and what was decided
	@tools/demo

lab: setup      ## learn the call: the lab, on a page of this machine
	@$(BIN)/stockade lab

test: setup    ## all tests in a sealed network namespace; as root the kernel ones also as an ordinary user
	@tools/test

check: setup    ## format, lint, types, import directions, generated pages, fast tests: under a minute
	@tools/check

fix: setup      ## format, and repair what can be repaired safely
	@$(BIN)/ruff format -q && $(BIN)/ruff check -q --fix && $(BIN)/python tools/reference.py

prove-tests: setup  ## switch each protection off and see its test fail: it tests the tests
	@$(BIN)/python tools/prove_tests.py

bench: setup    ## figures beside those of the peers, as ratios from one run (QUICK=1: a minute)
	@bench/run

docs: setup     ## write the generated pages of docs again
	@$(BIN)/python tools/reference.py

doctor: setup   ## what this host can enforce, found out by trying
	@$(BIN)/stockade doctor

lock: setup     ## resolve the dependencies again into requirements/*.txt
	@tools/lock
