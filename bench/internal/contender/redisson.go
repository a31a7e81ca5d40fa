package contender

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// redissonReady builds the Java program once, if Maven and a JDK are there.
var redissonReady = sync.OnceValue(func() error {
	for _, tool := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return Missing{tool}
		}
	}
	dir, err := redissonDir()
	if err != nil {
		return err
	}
	if built(dir) {
		return nil
	}
	cmd := exec.Command("mvn", "-q", "-B", "package")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn package: %w: %s", err, out)
	}
	return nil
})

// Missing is a tool that a library needs and this machine does not have.
type Missing struct{ tool string }

func (m Missing) Error() string { return "no " + m.tool + " in PATH" }

// redissonDir has the sources, and what Maven makes of them: this module is only ever
// run from its sources.
func redissonDir() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "../../redisson")
	if _, err := os.Stat(dir); !ok || err != nil {
		return "", errors.Join(errors.New("the Java sources are not where they were compiled"), err)
	}
	return dir, nil
}

// built reports whether the jar is newer than all it is made of.
func built(dir string) bool {
	jars, err := filepath.Glob(filepath.Join(dir, "target", "*.jar"))
	if err != nil || len(jars) == 0 {
		return false
	}
	sources, err := filepath.Glob(filepath.Join(dir, "src/main/java/holdfast/bench", "*.java"))
	if err != nil {
		return false
	}
	jar := modified(jars[0])
	for _, source := range append(sources, filepath.Join(dir, "pom.xml")) {
		if modified(source).After(jar) {
			return false
		}
	}
	return true
}

func modified(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// RedissonCommand is a Java worker. Its stacks are small, since it has a thread per
// caller; the serial collector is the right one for a core.
func RedissonCommand() (*exec.Cmd, error) {
	if err := redissonReady(); err != nil {
		return nil, fmt.Errorf("redisson: %w", err)
	}
	dir, err := redissonDir()
	if err != nil {
		return nil, err
	}
	target := filepath.Join(dir, "target")
	path := filepath.Join(target, "classes") + string(os.PathListSeparator) + filepath.Join(target, "lib", "*")
	return exec.Command("java", "-XX:+UseSerialGC", "-Xss256k", "-Xmx512m", "-cp", path, "holdfast.bench.Worker"), nil
}
