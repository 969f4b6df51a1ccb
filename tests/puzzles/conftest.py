"""Tests of the course share their choice of puzzles."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
