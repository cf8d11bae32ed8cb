package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// unversioned is the version of a build that no tag or commit is known for.
const unversioned = "dev"

// versionCommand builds `waybill version`.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) {
			say(c.OutOrStdout(), "waybill %s %s %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}

// version is what the Go toolchain stamped into the binary: the tag, or a
// pseudo-version with the commit. There is no variable for the linker to set,
// because two sources of the version would one day disagree.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unversioned
	}
	return stamped(info.Main.Version)
}

func stamped(version string) string {
	if version == "" || version == "(devel)" {
		return unversioned
	}
	return version
}
