package console_test

import (
	"testing"

	"reeve/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }
