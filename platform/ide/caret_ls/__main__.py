import sys

from caret_ls.cli import main

sys.exit(main(sys.argv[1:]))
