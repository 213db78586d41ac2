import sys

from caret_ls.command_line import main

sys.exit(main(sys.argv[1:]))
