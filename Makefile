# SPDX-License-Identifier: GPL-2.0-only
# See "make help". How the module itself is built is in Kbuild.

release := $(shell uname -r)
KDIR ?= /lib/modules/$(release)/build
V ?= 0
# No "make[1]: Leaving directory" behind the last line of what was asked for.
MAKEFLAGS += --no-print-directory

# The tools call make themselves, and are not to see this one's variables.
tool := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u KDIR -u O V=$(V)
quiet := $(if $(filter 1,$(V)),,-s)
# Without pahole there is no BTF, which only tracers of the module would miss.
kbuild = $(MAKE) -C $(KDIR) M=$(CURDIR) \
	$(if $(shell command -v pahole),,CONFIG_DEBUG_INFO_BTF_MODULES=)

modules: headers		## build hwtw.ko for the running kernel, or for KDIR=DIR
	@$(kbuild) modules

# Distributions' headers come without the key that would sign the module, and
# without the System.map that kbuild wants to see before it runs depmod.
modules_install: modules	## install it, as root; INSTALL_MOD_PATH=DIR: under DIR
	@$(kbuild) $(if $(wildcard $(KDIR)/certs/signing_key.pem),,CONFIG_MODULE_SIG_ALL=) \
		modules_install
ifeq ($(INSTALL_MOD_PATH),)
	@PATH="$$PATH:/sbin:/usr/sbin" depmod $$(cat $(KDIR)/include/config/kernel.release)
endif

clean:				## remove everything that was built here
	@rm -rf build .tmp_versions modules.order Module.symvers
	@find . \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name '.*.d' -o -name '*.a' \) \
		! -path './.git/*' -type f -delete

demo:				## a million timeouts in a VM; DEMO="ARGS", such as --help
	@$(tool) tools/vm/deps build vm
	@$(MAKE) $(quiet) -C tools/demo O=$(CURDIR)/build/demo
	@echo "hwtw: the demo runs in QEMU, on a CPU whose clock counts instructions" >&2
	@$(tool) tools/vm/run --icount --timeout 7200 -- build/demo/demo $(DEMO)

check:				## run the tests, most of them in VMs; STEPS="NAMES": some
	@$(tool) tools/check $(STEPS)

check-all:			## the same, and what takes minutes or kernels built for it
	@$(tool) tools/check --all $(STEPS)

deb:				## build Debian packages into build/deb: DKMS, tools, library
	@$(tool) tools/package/build

coverage:			## how much of the module its tests run; TESTS="NAMES": some
	@$(tool) tools/coverage/run $(TESTS)

bench:				## hwtw and its peers in a VM, by instructions; BENCH=full: larger
	@$(tool) tools/bench/run $(BENCH)

bench-native:			## the wheel on this processor, by time; BENCH="ARGS"
	@$(tool) tools/vm/deps build
	@$(MAKE) $(quiet) -C tools/bench O=$(CURDIR)/build/bench $(CURDIR)/build/bench/native
	@build/bench/native $(BENCH)

vm-shell:			## a shell in a VM with the module loaded, the demo, hwtwctl
	@$(tool) tools/vm/deps build vm
	@$(MAKE) $(quiet) -C tools/demo O=$(CURDIR)/build/demo
	@$(MAKE) $(quiet) -C tools/hwtwctl O=$(CURDIR)/build/hwtwctl
	@$(tool) tools/vm/run --file build/demo/demo:/bin/demo \
		--file build/hwtwctl/hwtwctl:/bin/hwtwctl --shell

help:				## list the targets
	@sed -n 's/^\([a-z_-]*\):[^#]*## \(.*\)/  \1 \2/p' Makefile | \
		while read -r name text; do printf '  %-16s %s\n' "$$name" "$$text"; done
	@echo '  V=1 shows commands. Any program in a VM with the module: tools/vm/run --help'

headers:
	@test -e $(KDIR)/Makefile || { \
		echo "hwtw: no kernel headers in $(KDIR): run" \
		"\"apt-get install linux-headers-$(if $(filter file,$(origin KDIR)),$(release),amd64)\"" \
		"or say where they are with KDIR=DIR" >&2; exit 2; }

.PHONY: modules modules_install clean demo check check-all coverage deb bench bench-native vm-shell help headers
