//go:build !linux

package main_test

import "syscall"

func orphanless() *syscall.SysProcAttr { return nil }
