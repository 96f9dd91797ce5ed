//! Arguments, roles as subcommands, exit codes.
