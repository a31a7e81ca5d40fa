package bench

import (
	"cmp"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/load"
	"github.com/holdfast-go/holdfast/bench/internal/report"
)

// machine describes where the report is made. What cannot be found out is empty.
func machine(server *load.Server, pinning load.Pinning) report.Machine {
	m := report.Machine{
		Placement: pinning.String(),
		Go:        runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Redis:     server.Version(),
		Modules:   make(map[string]string),
	}
	m.CPU, m.Cores = processor()
	m.Kernel = output("uname", "-sr")
	m.Commit = output("git", "describe", "--always", "--dirty", "--abbrev=12")
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			switch d.Path {
			case "github.com/redis/go-redis/v9", "github.com/redis/rueidis",
				"github.com/go-redsync/redsync/v4", "github.com/bsm/redislock":
				m.Modules[d.Path] = d.Version
			}
		}
	}
	return m
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// processor returns its model and the machine's cores; runtime.NumCPU only knows those left by Pin.
func processor() (model string, cores int) {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		switch k, v, _ := strings.Cut(line, ":"); strings.TrimSpace(k) {
		case "model name":
			model = strings.TrimSpace(v)
		case "processor":
			cores++
		}
	}
	return model, cmp.Or(cores, runtime.NumCPU())
}
