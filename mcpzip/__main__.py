from mcpzip.cli.main import main

main()
