package devstack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// TemporalVariable names the environment variable that points to another
// `temporal` program than the repository's own.
const TemporalVariable = "WAYBILL_TEMPORAL_BIN"

// FindTemporal finds the `temporal` program: what WAYBILL_TEMPORAL_BIN names,
// then .waybill/bin/temporal in this directory or one above it (a test runs in
// its package's directory), then PATH. The error says what to do.
func FindTemporal(getenv func(string) string) (string, error) {
	if named := getenv(TemporalVariable); named != "" {
		if err := checkTemporal(named); err != nil {
			return "", fmt.Errorf("%s: %w", TemporalVariable, err)
		}
		return filepath.Abs(named)
	}
	dir, err := os.Getwd()
	for err == nil {
		built := filepath.Join(dir, ".waybill", "bin", "temporal")
		if checkTemporal(built) == nil {
			return built, nil
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	if found, err := exec.LookPath("temporal"); err == nil {
		return filepath.Abs(found)
	}
	return "", fmt.Errorf("%w: no .waybill/bin/temporal in this directory or above and no temporal on PATH; "+
		"run `make tools` (about five minutes, once), or name one in "+TemporalVariable, ErrMissing)
}

// checkTemporal says what is wrong with a path, nil when it can be run.
func checkTemporal(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %v; run `make tools`", ErrMissing, err)
	case info.IsDir():
		return fmt.Errorf("%w: %s is a directory", ErrMissing, path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%w: %s is not executable", ErrMissing, path)
	}
	return nil
}
