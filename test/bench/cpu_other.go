//go:build !linux

package main

import "time"

// cpu is not read on other systems.
func (p *process) cpu() time.Duration { return 0 }
